/*
 * The two text formats of a matrix of responses: the own one, and the part of jconvolver's configuration that describes
 * the routes.
 */
#include "matrix.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 12 };

/* Parses a channel number 1..1024 and stores it from 0 on. */
static bool parse_channel(const char *word, int *channel) {
    double value;
    if (!gc_number_parse(word, &value) || !(value >= 1 && value <= GC_MAX_CHANNELS) || value != floor(value))
        return false;
    *channel = (int)value - 1;
    return true;
}

/* Returns whether a time, in seconds or frames, is in its range. */
static bool is_time(double time) {
    return time >= 0 && time <= 1e12;
}

/* Parses a time in frames. */
static bool parse_time(const char *word, double *value) {
    return gc_number_parse(word, value) && is_time(*value);
}

/* Returns whether a row has a field that is not empty. */
static bool has(const gc_table *t, int field) {
    return field < t->fields && *t->field[field];
}

/* Reads a line of the own format: INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]; an empty field at the
 * end or in the middle has its default. */
static gpuconv_status read_own_line(gc_matrix *m, gc_table *t, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1, .factor = 1, .in_seconds = true};
    double gain = 0;
    char **word = t->field;
    if (!has(t, 0) || !has(t, 1) || !has(t, 2) || t->fields > 8)
        return gc_matrix_fail(m, error, "a line is INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]");
    if (!parse_channel(word[0], &e.input) || !parse_channel(word[1], &e.output))
        return gc_matrix_fail(m, error, "inputs and outputs are numbers from 1 to %d", GC_MAX_CHANNELS);
    if (has(t, 3) && !parse_channel(word[3], &e.channel))
        return gc_matrix_fail(m, error, "'%s' is not a channel; channels are numbered from 1", word[3]);
    if (has(t, 4) && !(gc_table_number(t, 4, &gain) && gc_is_gain(gain)))
        return gc_matrix_fail(m, error, "'%s' is not a gain of -%d to %d dB", word[4], GC_MAX_DECIBELS,
                              GC_MAX_DECIBELS);
    double *const times[] = {&e.delay, &e.offset, &e.length};
    for (int i = 5; i < t->fields; i++)
        if (has(t, i) && !(gc_table_number(t, i, times[i - 5]) && is_time(*times[i - 5])))
            return gc_matrix_fail(m, error, "'%s' is not a time in seconds", word[i]);
    e.factor = gc_level_factor(gain);
    gc_matrix_grow(m, e.input, e.output);
    gpuconv_status status =
        strcmp(word[2], "dirac") == 0 ? GPUCONV_OK : gc_matrix_find_file(m, word[2], &e.file, error);
    return status ? status : gc_matrix_add(m, &e, error);
}

/* Reads a line of gains to an output, such as a row of an ambisonic decoder: row OUTPUT FACTOR FACTOR... with a factor
 * for each input. */
static gpuconv_status read_row(gc_matrix *m, gc_table *t, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1};
    if (!has(t, 1) || !parse_channel(t->field[1], &e.output))
        return gc_matrix_fail(m, error, "a row of gains is: row OUTPUT FACTOR FACTOR..., with a factor for each input");
    for (int i = 2; i < t->fields; i++, e.input++) {
        if (e.input == GC_MAX_CHANNELS || !gc_table_number(t, i, &e.factor) || !(fabs(e.factor) <= 1e10))
            return gc_matrix_fail(m, error, "'%.40s' is not a factor of -1e10 to 1e10, or one of more than %d",
                                  t->field[i], GC_MAX_CHANNELS);
        gc_matrix_grow(m, e.input, e.output);
        gpuconv_status status = e.factor != 0 ? gc_matrix_add(m, &e, error) : GPUCONV_OK;
        if (status)
            return status;
    }
    return e.input ? GPUCONV_OK : gc_matrix_fail(m, error, "a row without factors");
}

/* ---- jconvolver -------------------------------------------------------------------------------------------------- */

/* Parses input and output of a route that /convolver/new declares. Without that command, as in configurations of mcfx,
 * the matrix grows with its routes. */
static gpuconv_status parse_route(gc_matrix *m, char **word, gc_matrix_entry *e, gpuconv_error *error) {
    bool parsed = parse_channel(word[0], &e->input) && parse_channel(word[1], &e->output);
    if (parsed && m->max_frames == 0)
        gc_matrix_grow(m, e->input, e->output);
    if (!parsed || e->input >= m->inputs || e->output >= m->outputs)
        return gc_matrix_fail(m, error, "%s to %s is not a route of %d inputs and %d outputs", word[0], word[1],
                              m->inputs, m->outputs);
    return GPUCONV_OK;
}

/* /convolver/new INPUTS OUTPUTS PARTITION LENGTH [DENSITY] */
static gpuconv_status conf_new(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    int inputs, outputs;
    double partition, max_frames;
    if (words < 4 || words > 5 || !parse_channel(word[0], &inputs) || !parse_channel(word[1], &outputs) ||
        !gc_number_parse(word[2], &partition) || !gc_number_parse(word[3], &max_frames) ||
        !(max_frames >= 1 && max_frames <= 1e10))
        return gc_matrix_fail(m, error,
                              "/convolver/new needs inputs, outputs, a partition and the longest response's frames");
    if (m->max_frames > 0)
        return gc_matrix_fail(m, error, "/convolver/new is allowed once only");
    if (m->entries > 0)
        return gc_matrix_fail(m, error, "/convolver/new must come before the first route");
    m->inputs = inputs + 1;
    m->outputs = outputs + 1;
    m->max_frames = (int64_t)max_frames;
    return GPUCONV_OK;
}

/* /impulse/read INPUT OUTPUT GAIN DELAY OFFSET LENGTH CHANNEL FILE */
static gpuconv_status conf_read(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1};
    if (words != 8 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay) ||
        !parse_time(word[4], &e.offset) || !parse_time(word[5], &e.length) || !parse_channel(word[6], &e.channel))
        return gc_matrix_fail(m, error,
                              "/impulse/read needs input, output, gain, delay, offset, length, channel and file");
    gpuconv_status status = parse_route(m, word, &e, error);
    if (!status)
        status = gc_matrix_find_file(m, word[7], &e.file, error);
    return status ? status : gc_matrix_add(m, &e, error);
}

/* /impulse/dirac INPUT OUTPUT GAIN DELAY */
static gpuconv_status conf_dirac(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1};
    if (words != 4 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay))
        return gc_matrix_fail(m, error, "/impulse/dirac needs input, output, gain and delay");
    gpuconv_status status = parse_route(m, word, &e, error);
    return status ? status : gc_matrix_add(m, &e, error);
}

/* /impulse/hilbert INPUT OUTPUT GAIN DELAY LENGTH; the delay is that of the middle. */
static gpuconv_status conf_hilbert(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1};
    if (words != 5 || !gc_number_parse(word[2], &e.factor) || !parse_time(word[3], &e.delay) ||
        !parse_time(word[4], &e.length) || !(e.length >= 64 && e.length <= 65536))
        return gc_matrix_fail(m, error,
                              "/impulse/hilbert needs input, output, gain, delay and a length of 64 to 65536 frames");
    e.delay -= floor(e.length / 2);
    if (e.delay < 0)
        return gc_matrix_fail(m, error, "the delay of /impulse/hilbert is at least half its length of %g", e.length);
    gpuconv_status status = parse_route(m, word, &e, error);
    return status ? status : gc_matrix_add(m, &e, error);
}

/* /impulse/copy INPUT OUTPUT FROM-INPUT FROM-OUTPUT */
static gpuconv_status conf_copy(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry to = {0}, from = {0};
    if (words != 4)
        return gc_matrix_fail(m, error,
                              "/impulse/copy needs input and output, and input and output of the route to copy");
    gpuconv_status status = parse_route(m, word, &to, error);
    if (!status)
        status = parse_route(m, word + 2, &from, error);
    if (!status && to.input == from.input && to.output == from.output)
        return gc_matrix_fail(m, error, "a route is not copied to itself");
    return status
               ? status
               : gc_matrix_add_copy(m, &(gc_matrix_copy){to.input, to.output, from.input, from.output, m->line}, error);
}

/* /impulse/packedmatrix INPUTS GAIN DELAY OFFSET LENGTH FILE, of mcfx: channel o of the file holds the responses from
 * all inputs to output o, one after the other, each as long as the file divided by INPUTS. */
static gpuconv_status conf_packed(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1};
    int inputs;
    if (words != 6 || !parse_channel(word[0], &inputs) || !gc_number_parse(word[1], &e.factor) ||
        !parse_time(word[2], &e.delay) || !parse_time(word[3], &e.offset) || !parse_time(word[4], &e.length))
        return gc_matrix_fail(m, error, "/impulse/packedmatrix needs inputs, gain, delay, offset, length and file");
    gpuconv_status status = gc_matrix_find_file(m, word[5], &e.file, error);
    if (!status)
        status = gc_matrix_load_files(m, error);
    if (status)
        return status;
    const gpuconv_ir *ir = m->file[e.file].ir;
    const int64_t section = ir->frames / ++inputs;
    const double offset = e.offset, length = e.length > 0 ? e.length : (double)section - offset;
    if (ir->frames % inputs)
        return gc_matrix_fail(m, error, "%s has %lld frames, which %d inputs do not divide evenly",
                              m->file[e.file].path, (long long)ir->frames, inputs);
    if (!(length > 0 && offset + length <= (double)section))
        return gc_matrix_fail(m, error, "%s has %lld frames for each input, not %.0f from frame %.0f on",
                              m->file[e.file].path, (long long)section, length, offset);
    for (int i = 0; i < inputs && !status; i++)
        for (int o = 0; o < ir->planes && !status; o++) {
            char number[2][16];
            char *route[2] = {number[0], number[1]};
            (void)snprintf(number[0], sizeof number[0], "%d", i + 1);
            (void)snprintf(number[1], sizeof number[1], "%d", o + 1);
            status = parse_route(m, route, &e, error);
            e.channel = o;
            e.offset = offset + (double)(i * section);
            e.length = length;
            if (!status)
                status = gc_matrix_add(m, &e, error);
        }
    return status;
}

/* /cd [FOLDER], from the folder of the configuration; without one, as mcfx writes it, the folder stays. */
static gpuconv_status conf_folder(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    if (words == 0)
        return GPUCONV_OK;
    if ((*word[0] == '/' ? 0 : strlen(m->home)) + strlen(word[0]) + 2 > GC_MATRIX_MAX_FOLDER)
        return gc_matrix_fail(m, error, "/cd makes the folder's path longer than %d bytes; use an absolute path",
                              GC_MATRIX_MAX_FOLDER - 1);
    char *folder = gc_matrix_join_path(m->home, word[0], "/");
    if (!folder)
        return gc_fail_memory(error, m->path);
    free(m->folder);
    m->folder = folder;
    return GPUCONV_OK;
}

/* Reads a line of a jconvolver configuration: a command and the rest of the line. */
static gpuconv_status read_jconvolver_line(gc_matrix *m, char **line, int fields, gpuconv_error *error) {
    static const struct {
        const char *name;
        int last; /* the word, from 1, that is a name of a file or a folder; with mcfx it may have blanks */
        gpuconv_status (*read)(gc_matrix *m, char **word, int words, gpuconv_error *error);
    } known[] = {{"/convolver/new", 0, conf_new},
                 {"/impulse/read", 8, conf_read},
                 {"/impulse/dirac", 0, conf_dirac},
                 {"/impulse/hilbert", 0, conf_hilbert},
                 {"/impulse/copy", 0, conf_copy},
                 {"/impulse/packedmatrix", 6, conf_packed},
                 {"/cd", 1, conf_folder}};
    static const char *const ports[] = {"/input/name", "/output/name", "/jack/client", "/jack/server"};
    char none[] = "", *word[MAX_WORDS];
    const char *wrong;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(line[0], known[i].name) == 0) {
            const gc_table_form form = {
                .kind = GC_TABLE_WORDS, .most = MAX_WORDS, .last = known[i].last, .comments = true, .escapes = true};
            const int words = gc_table_split(&form, ' ', fields > 1 ? line[1] : none, word, &wrong);
            return words < 0 ? gc_matrix_fail(m, error, "%s", wrong) : known[i].read(m, word, words, error);
        }
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (strcmp(line[0], ports[i]) == 0)
            return GPUCONV_OK; /* of JACK, which is not used */
    return gc_matrix_fail(m, error,
                          "unknown command '%s'; known are /cd, /convolver/new, /impulse/read, /impulse/dirac, "
                          "/impulse/hilbert, /impulse/copy and /impulse/packedmatrix",
                          line[0]);
}

gpuconv_status gc_matrix_read_text(gc_matrix *m, gc_lines *lines, bool jconvolver, gpuconv_error *error) {
    static const gc_table_form conf = {.kind = GC_TABLE_WORDS, .most = 2, .last = 2, .comments = true},
                               own = {.kind = GC_TABLE_ROUTES,
                                      .most = 3 + GC_MAX_CHANNELS,
                                      .comments = true,
                                      .quotes = true};
    gc_table t;
    gpuconv_status status = gc_table_open(&t, jconvolver ? &conf : &own, lines, error);
    for (bool more = true; more && !status;) {
        status = gc_table_next(&t, &more, error);
        m->line = (int)t.line;
        if (status || !more)
            continue;
        if (jconvolver)
            status = read_jconvolver_line(m, t.field, t.fields, error);
        else
            status = strcmp(t.field[0], "row") == 0 ? read_row(m, &t, error) : read_own_line(m, &t, error);
    }
    gc_table_close(&t);
    return status ? status : gc_matrix_resolve_copies(m, error);
}
