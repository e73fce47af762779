/* Responses of directions, loudspeaker layouts and ambisonics: a source in a direction is interpolated between measured
 * responses (sofa.c), or the nearest; ambisonics are decoded by a fit (ambisonic.c). Layouts are known by name, or read
 * from text files of directions. */
#include "spatial.h"

#include "ambisonic.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Directions -------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = GC_MAX_CHANNELS + 1 };

static const gc_table_form words_form = {.kind = GC_TABLE_WORDS, .most = MAX_WORDS, .comments = true},
                           direction_form = {.kind = GC_TABLE_WORDS, .most = 3};

typedef struct named_layout {
    const char *name, *directions;
} named_layout;

/* The low-frequency channel has no direction of its own and comes from the front. */
static const named_layout layouts[] = {
    {"mono", "0,0"},
    {"stereo", "30,0 -30,0"},
    {"5.1", "30,0 -30,0 0,0 0,0 110,0 -110,0"},
    {"7.1", "30,0 -30,0 0,0 0,0 135,0 -135,0 90,0 -90,0"},
    {"5.1.4", "30,0 -30,0 0,0 0,0 110,0 -110,0 45,30 -45,30 135,30 -135,30"},
    {"7.1.4", "30,0 -30,0 0,0 0,0 135,0 -135,0 90,0 -90,0 45,30 -45,30 135,30 -135,30"},
};

bool gc_direction_parse(const char *text, double at[3]) {
    double value[3] = {0, 0, 1};
    int count = 0;
    char copy[96], *field[3];
    const char *wrong;
    const char separator = strchr(text, ';') ? ';' : ',';
    gc_table one = {.separator = separator, .field = field};
    if (strlen(text) >= sizeof copy)
        return false;
    (void)snprintf(copy, sizeof copy, "%s", text);
    one.fields = gc_table_split(&direction_form, separator, copy, field, &wrong);
    for (; count < one.fields; count++)
        if (!gc_table_number(&one, count, &value[count]))
            return false;
    if (count < 2 || !(fabs(value[0]) <= 360 && fabs(value[1]) <= 90 && value[2] >= 0.01 && value[2] <= 1000))
        return false;
    const double azimuth = value[0] * M_PI / 180, elevation = value[1] * M_PI / 180;
    at[0] = value[2] * cos(elevation) * cos(azimuth);
    at[1] = value[2] * cos(elevation) * sin(azimuth);
    at[2] = value[2] * sin(elevation);
    return true;
}

/* Adds directions. Returns false at the first word that is none; *wrong gets it. */
static bool take_words(char *const *word, int words, gc_directions *d, const char **wrong) {
    for (int i = 0; i < words; i++, d->count++) {
        *wrong = word[i];
        if (d->count == GC_MAX_CHANNELS || !gc_direction_parse(word[i], d->at[d->count]))
            return false;
    }
    return true;
}

/* Reads a text file. Returns ARGUMENT, FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_file(const char *path, gc_directions *d, gpuconv_error *error) {
    gc_lines lines;
    gc_table table = {0};
    const char *wrong = "";
    gpuconv_status status = gc_lines_open_regular(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (status && access(path, F_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "'%s' is neither a layout nor a file; layouts are mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4 and "
                         "ambisonic",
                         path);
    if (!status)
        status = gc_table_open(&table, &words_form, &lines, error);
    while (gc_table_next(&table, &status, error))
        if (!take_words(table.field, table.fields, d, &wrong))
            status =
                gc_table_fail(&table, error,
                              "'%.32s' is not AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres (with decimal commas "
                              "30,5;15), or one of more than %d",
                              wrong, GC_MAX_CHANNELS);
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && d->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no direction", path);
    return status;
}

gpuconv_status gc_directions_of_layout(const char *name, gc_directions *d, gpuconv_error *error) {
    d->count = 0;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (strcmp(name, layouts[i].name) == 0) {
            char text[128], *word[MAX_WORDS];
            const char *wrong;
            (void)snprintf(text, sizeof text, "%s", layouts[i].directions);
            (void)take_words(word, gc_table_split(&words_form, ' ', text, word, &wrong), d, &wrong);
            return GPUCONV_OK;
        }
    return read_file(name, d, error);
}

/* ---- Responses --------------------------------------------------------------------------------------------------- */

/* Makes a dense response from `inputs` channels to the receivers, with zeroed taps. Route and plane of input i and
 * receiver r have the number r x inputs + i. */
static gpuconv_ir *blank(const gpuconv_sofa *s, int inputs, gc_sofa_form form) {
    const int routes = inputs * s->receivers;
    gpuconv_ir *made = gc_ir_blank(inputs, s->receivers, routes, routes, form.frames, s->responses->rate);
    for (int p = 0; made && p < routes; p++)
        made->route[p] = (gc_route){p % inputs, p / inputs, p};
    if (made) {
        made->lead = form.lead;
        made->routed = true;
    }
    return made;
}

static float *taps_of(gpuconv_ir *ir, int input, int receiver) {
    return ir->taps + ((int64_t)receiver * ir->inputs + input) * ir->frames;
}

/* Finds the measurements of every channel, and the channel that is farthest from one. */
static int find_blends(const gpuconv_sofa *s, const gc_directions *d, const gpuconv_preparation *p,
                       gpuconv_interpolate how, gc_blend *blend) {
    const gc_rotation head = gc_rotation_of(p->yaw, p->pitch, p->roll);
    int worst = 0;
    for (int i = 0; i < d->count; i++) {
        double at[3];
        gc_rotate_to_head(&head, d->at[i], at);
        gc_sofa_blend(s, at, d->at[i], how, p->by_distance, &blend[i]);
        worst = blend[i].degrees > blend[worst].degrees ? i : worst;
    }
    return worst;
}

/* Appends to the history of a response how its directions were found. */
static gpuconv_status finish_directions(const gpuconv_sofa *s, gpuconv_ir *made, gpuconv_interpolate how, int worst,
                                        double degrees, gpuconv_ir **ir, gpuconv_error *error) {
    const char *order = s->exchanged ? GC_SOFA_EXCHANGED : "";
    if (degrees < 0.01)
        return gc_ir_finish(made, ir, error, "%d of its %d directions%s", made->inputs, s->measurements, order);
    if (s->measurements == 1)
        return gc_ir_finish(made, ir, error,
                            "its only direction for each channel; channel %d is %.1f degrees away from it%s", worst + 1,
                            degrees, order);
    return gc_ir_finish(
        made, ir, error, "%s its %d directions for each channel; channel %d is %.1f degrees away from %s%s",
        how == GPUCONV_INTERPOLATE_TRIANGLE ? "interpolated between three of" : "the nearest of", s->measurements,
        worst + 1, degrees, how == GPUCONV_INTERPOLATE_TRIANGLE ? "the nearest" : "it", order);
}

/* Makes the responses of all directions. Returns UNSUPPORTED, MEMORY, CANCELLED. */
static gpuconv_status make_directions(const gpuconv_sofa *s, const gc_directions *d, const gpuconv_preparation *p,
                                      bool moves, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_interpolate how = p->interpolate;
    gpuconv_status status = gc_sofa_choose(s, &how, error);
    if (status)
        return status;
    gc_blend *blend = gc_calloc(d->count, sizeof *blend);
    if (!blend)
        return gc_fail_memory(error, "the response");
    const int worst = find_blends(s, d, p, how, blend);
    const double degrees = blend[worst].degrees;
    bool interpolated = moves && how == GPUCONV_INTERPOLATE_TRIANGLE;
    for (int i = 0; i < d->count; i++)
        interpolated = interpolated || blend[i].weight[0] < 1;
    const gc_sofa_form form = gc_sofa_form_of(s, interpolated);
    gpuconv_ir *made = blank(s, d->count, form);
    status = made ? GPUCONV_OK : gc_fail_memory(error, "the response");
    for (int i = 0; i < d->count && !status; i++)
        status = gc_cancelled()
                     ? gc_fail_cancelled(error, "the response")
                     : gc_sofa_respond(s, &blend[i], form, taps_of(made, i, 0), d->count * form.frames, error);
    free(blend);
    if (status) {
        gpuconv_ir_free(made);
        return status;
    }
    return finish_directions(s, made, how, worst, degrees, ir, error);
}

/* Decodes ambisonics. Returns ARGUMENT, TOPOLOGY, MEMORY, CANCELLED. */
static gpuconv_status decode(const gpuconv_sofa *s, int inputs, const gpuconv_preparation *p, gpuconv_ir **ir,
                             gpuconv_error *error) {
    const gc_rotation head = gc_rotation_of(p->yaw, p->pitch, p->roll);
    const int order = gc_ambisonic_order(inputs);
    gc_decoder *decoder;
    if (s->speakers > 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: ambisonics are not decoded to the %d loudspeakers of a room (%s); use --layout stereo or "
                       "another one of loudspeakers",
                       s->name, s->speakers, s->conventions);
    if (!order)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "ambisonics of order 1 to 7 have 4, 9, 16, 25, 36, 49 or 64 channels, not %d", inputs);
    gpuconv_status status = gc_decoder_new(s, order, p->decode, p->diffuse_eq, p->ambisonics, &decoder, error);
    if (!status)
        status = gc_decoder_turn(decoder, &head, ir, error);
    gc_decoder_free(decoder);
    return status;
}

/* Finds the directions of the channels: the one given, those of a layout, or the front if there is only one. */
static gpuconv_status find_directions(const gpuconv_sofa *s, const gpuconv_preparation *p, int inputs, gc_directions *d,
                                      gpuconv_error *error) {
    d->count = 1;
    if (p->direction && !gc_direction_parse(p->direction, d->at[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "'%.40s' is not a direction AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres, such as 30,0",
                       p->direction);
    if (p->speakers) {
        gpuconv_status status = gc_directions_of_layout(p->speakers, d, error);
        if (status)
            return status;
    }
    if (!p->direction && !p->speakers) {
        (void)gc_direction_parse("0,0", d->at[0]);
        if (s->measurements > 1)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: has %d directions; choose with --direction AZIMUTH,ELEVATION or --layout NAME", s->name,
                           s->measurements);
    }
    if (d->count != inputs)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%s: %d direction%s for an input of %d channel%s; use a --layout of as many channels%s", s->name,
                       d->count, d->count == 1 ? "" : "s", inputs, inputs == 1 ? "" : "s",
                       inputs == 1 ? ", or --direction" : "");
    return GPUCONV_OK;
}

bool gc_spatial_is_ambisonic(const char *layout) {
    return layout && strcmp(layout, "ambisonic") == 0;
}

gpuconv_status gc_spatial_make(const gpuconv_sofa *s, const gpuconv_preparation *p, bool moves, int inputs,
                               gpuconv_ir **ir, gpuconv_error *error) {
    *ir = NULL;
    if (p->direction && p->speakers)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a direction and a layout exclude each other");
    if (gc_spatial_is_ambisonic(p->speakers))
        return decode(s, inputs, p, ir, error);
    gc_directions *d = gc_calloc(1, sizeof *d);
    gpuconv_status status = d ? find_directions(s, p, inputs, d, error) : gc_fail_memory(error, "the response");
    if (!status)
        status = make_directions(s, d, p, moves, ir, error);
    free(d);
    return status;
}
