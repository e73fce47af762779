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

/* Splits a line into words in place; "..." is one word, # begins a comment. Returns their number; -1: too many words,
 * or a quotation mark without its pair. */
static int split_words(char *line, char **word) {
    int count = 0;
    for (char *at = line;;) {
        at += strspn(at, " \t\r\n");
        if (!*at || *at == '#')
            return count;
        if (count == MAX_WORDS)
            return -1;
        if (*at == '"') {
            word[count++] = ++at;
            at = strchr(at, '"');
            if (!at)
                return -1;
        } else {
            word[count++] = at;
            at += strcspn(at, " \t\r\n");
            if (!*at)
                return count;
        }
        *at++ = '\0';
    }
}

/* Parses a channel number 1..1024 and stores it from 0 on. */
static bool parse_channel(const char *word, int *channel) {
    double value;
    if (!gc_number_parse(word, &value) || !(value >= 1 && value <= GC_MAX_CHANNELS) || value != floor(value))
        return false;
    *channel = (int)value - 1;
    return true;
}

/* Parses a time from 0 to 1e12, in seconds or frames. */
static bool parse_time(const char *word, double *value) {
    return gc_number_parse(word, value) && *value >= 0 && *value <= 1e12;
}

/* Reads a line of the own format: INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]] */
static gpuconv_status read_own_line(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry e = {.file = -1, .factor = 1, .in_seconds = true};
    double gain = 0;
    if (words < 3 || words > 8)
        return gc_matrix_fail(m, error, "a line is INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]]");
    if (!parse_channel(word[0], &e.input) || !parse_channel(word[1], &e.output))
        return gc_matrix_fail(m, error, "inputs and outputs are numbers from 1 to %d", GC_MAX_CHANNELS);
    if (words > 3 && !parse_channel(word[3], &e.channel))
        return gc_matrix_fail(m, error, "'%s' is not a channel; channels are numbered from 1", word[3]);
    if (words > 4 && !(gc_number_parse(word[4], &gain) && gc_is_gain(gain)))
        return gc_matrix_fail(m, error, "'%s' is not a gain of -%d to %d dB", word[4], GC_MAX_DECIBELS,
                              GC_MAX_DECIBELS);
    double *const times[] = {&e.delay, &e.offset, &e.length};
    for (int i = 5; i < words; i++)
        if (!parse_time(word[i], times[i - 5]))
            return gc_matrix_fail(m, error, "'%s' is not a time in seconds", word[i]);
    e.factor = gc_level_factor(gain);
    gc_matrix_grow(m, e.input, e.output);
    gpuconv_status status =
        strcmp(word[2], "dirac") == 0 ? GPUCONV_OK : gc_matrix_find_file(m, word[2], &e.file, error);
    return status ? status : gc_matrix_add(m, &e, error);
}

/* Reads a line of gains to an output, such as a row of an ambisonic decoder: row OUTPUT FACTOR FACTOR... with a factor
 * for each input. */
static gpuconv_status read_row(gc_matrix *m, char *line, gpuconv_error *error) {
    char *rest = NULL, *word;
    gc_matrix_entry e = {.file = -1};
    (void)strtok_r(line, " \t\r\n", &rest); /* "row" */
    word = strtok_r(NULL, " \t\r\n", &rest);
    if (!word || !parse_channel(word, &e.output))
        return gc_matrix_fail(m, error, "a row of gains is: row OUTPUT FACTOR FACTOR..., with a factor for each input");
    while ((word = strtok_r(NULL, " \t\r\n", &rest)) != NULL && *word != '#') {
        if (e.input == GC_MAX_CHANNELS || !gc_number_parse(word, &e.factor) || !(fabs(e.factor) <= 1e10))
            return gc_matrix_fail(m, error, "'%.40s' is not a factor of -1e10 to 1e10, or one of more than %d", word,
                                  GC_MAX_CHANNELS);
        gc_matrix_grow(m, e.input, e.output);
        gpuconv_status status = e.factor != 0 ? gc_matrix_add(m, &e, error) : GPUCONV_OK;
        if (status)
            return status;
        e.input++;
    }
    return e.input ? GPUCONV_OK : gc_matrix_fail(m, error, "a row without factors");
}

/* Returns whether a line of the own format is a row of gains. */
static bool is_row(const char *line) {
    line += strspn(line, " \t");
    return strncmp(line, "row", 3) == 0 && line[3] && strchr(" \t", line[3]);
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

/* /impulse/copy INPUT OUTPUT FROM-INPUT FROM-OUTPUT */
static gpuconv_status conf_copy(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    gc_matrix_entry to, from;
    if (words != 4)
        return gc_matrix_fail(m, error,
                              "/impulse/copy needs input and output, and input and output of the route to copy");
    gpuconv_status status = parse_route(m, word, &to, error);
    if (!status)
        status = parse_route(m, word + 2, &from, error);
    bool found = false;
    for (int64_t i = 0, n = m->entries; i < n && !status; i++)
        if (m->entry[i].input == from.input && m->entry[i].output == from.output) {
            gc_matrix_entry copy = m->entry[i];
            copy.input = to.input;
            copy.output = to.output;
            found = true;
            status = gc_matrix_add(m, &copy, error);
        }
    if (!status && !found)
        status = gc_matrix_fail(m, error, "there is no route from %s to %s to copy", word[2], word[3]);
    return status;
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

/* /cd [FOLDER]; without one, as mcfx writes it, the folder stays. */
static gpuconv_status conf_folder(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    if (words == 0)
        return GPUCONV_OK;
    if (words != 1)
        return gc_matrix_fail(m, error, "/cd needs one folder, in quotation marks if it contains blanks");
    if ((*word[0] == '/' ? 0 : strlen(m->folder)) + strlen(word[0]) + 2 > GC_MATRIX_MAX_FOLDER)
        return gc_matrix_fail(m, error, "/cd makes the folder's path longer than %d bytes; use an absolute path",
                              GC_MATRIX_MAX_FOLDER - 1);
    char *folder = gc_matrix_join_path(m->folder, word[0], "/");
    if (!folder)
        return gc_fail_memory(error, m->path);
    free(m->folder);
    m->folder = folder;
    return GPUCONV_OK;
}

/* Reads a line of a jconvolver configuration. */
static gpuconv_status read_jconvolver_line(gc_matrix *m, char **word, int words, gpuconv_error *error) {
    static const struct {
        const char *name;
        gpuconv_status (*read)(gc_matrix *m, char **word, int words, gpuconv_error *error);
    } known[] = {{"/convolver/new", conf_new}, {"/impulse/read", conf_read},           {"/impulse/dirac", conf_dirac},
                 {"/impulse/copy", conf_copy}, {"/impulse/packedmatrix", conf_packed}, {"/cd", conf_folder}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word[0], known[i].name) == 0)
            return known[i].read(m, word + 1, words - 1, error);
    if (strcmp(word[0], "/input/name") == 0 || strcmp(word[0], "/output/name") == 0)
        return GPUCONV_OK; /* names of JACK ports, which are not used */
    return gc_matrix_fail(
        m, error,
        "unknown command '%s'; known are /cd, /convolver/new, /impulse/read, /impulse/dirac, /impulse/copy and "
        "/impulse/packedmatrix",
        word[0]);
}

gpuconv_status gc_matrix_read_text(gc_matrix *m, gc_lines *lines, bool jconvolver, gpuconv_error *error) {
    static const char byte_order_mark[] = "\xEF\xBB\xBF"; /* which some editors write first */
    char *line, *word[MAX_WORDS];
    gpuconv_status status;
    while (!(status = gc_lines_next(lines, &line, error)) && line) {
        m->line = (int)lines->number;
        if (m->line == 1 && strncmp(line, byte_order_mark, sizeof byte_order_mark - 1) == 0)
            line += sizeof byte_order_mark - 1;
        if (!jconvolver && is_row(line)) {
            status = read_row(m, line, error);
        } else {
            int words = split_words(line, word);
            if (words < 0)
                status =
                    gc_matrix_fail(m, error, "more than %d words, or a quotation mark without its pair", MAX_WORDS);
            else if (words > 0)
                status =
                    jconvolver ? read_jconvolver_line(m, word, words, error) : read_own_line(m, word, words, error);
        }
        if (status)
            break;
    }
    return status;
}
