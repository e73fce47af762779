/* A source in a direction is interpolated between measured responses (sofa_respond.c), or the nearest. Ambisonics are
 * decoded by a fit (ambisonic.c). */
#include "spatial.h"

#include "ambisonic.h"
#include "directions.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static int find_blends(const gpuconv_sofa *s, const gc_directions *d, const gc_scene *scene, gpuconv_interpolate how,
                       gc_blend *blend) {
    const gc_rotation head = gc_rotation_of(scene->head.yaw, scene->head.pitch, scene->head.roll);
    int worst = 0;
    for (int i = 0; i < d->count; i++) {
        double at[3];
        gc_rotate_to_head(&head, d->at[i], at);
        gc_sofa_blend(s, at, d->at[i], how, scene->by_distance, &blend[i]);
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
static gpuconv_status make_directions(const gpuconv_sofa *s, const gc_directions *d, const gc_scene *scene,
                                      gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_interpolate how = scene->interpolate;
    gpuconv_status status = gc_sofa_choose(s, &how, error);
    if (status)
        return status;
    gc_blend *blend = gc_calloc(d->count, sizeof *blend);
    if (!blend)
        return gc_fail_memory(error, "the response");
    const int worst = find_blends(s, d, scene, how, blend);
    const double degrees = blend[worst].degrees;
    bool interpolated = scene->moves && how == GPUCONV_INTERPOLATE_TRIANGLE;
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
static gpuconv_status decode(const gpuconv_sofa *s, int inputs, const gc_scene *scene, gpuconv_ir **ir,
                             gpuconv_error *error) {
    const gc_rotation head = gc_rotation_of(scene->head.yaw, scene->head.pitch, scene->head.roll);
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
    gpuconv_status status = gc_decoder_new(s, order, scene->decode, scene->diffuse_eq, &decoder, error);
    if (!status)
        status = gc_decoder_turn(decoder, &head, ir, error);
    gc_decoder_free(decoder);
    return status;
}

/* Finds the directions of the channels: the one given, those of a layout, or the front if there is only one. */
static gpuconv_status find_directions(const gpuconv_sofa *s, const gc_scene *scene, int inputs, gc_directions *d,
                                      gpuconv_error *error) {
    d->count = 1;
    if (scene->direction && !gc_direction_parse(scene->direction, d->at[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "'%.40s' is not a direction AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres, such as 30,0",
                       scene->direction);
    if (scene->layout) {
        gpuconv_status status = gc_directions_of_layout(scene->layout, d, error);
        if (status)
            return status;
    }
    if (!scene->direction && !scene->layout) {
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

bool gc_spatial_is_ambisonic(const gc_scene *scene) {
    return scene->layout && strcmp(scene->layout, "ambisonic") == 0;
}

gpuconv_status gc_spatial_make(const gpuconv_sofa *s, const gc_scene *scene, int inputs, gpuconv_ir **ir,
                               gpuconv_error *error) {
    *ir = NULL;
    if (scene->direction && scene->layout)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a direction and a layout exclude each other");
    if (gc_spatial_is_ambisonic(scene))
        return decode(s, inputs, scene, ir, error);
    gc_directions *d = gc_calloc(1, sizeof *d);
    gpuconv_status status = d ? find_directions(s, scene, inputs, d, error) : gc_fail_memory(error, "the response");
    if (!status)
        status = make_directions(s, d, scene, ir, error);
    free(d);
    return status;
}
