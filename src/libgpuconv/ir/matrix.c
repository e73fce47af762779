/*
 * Matrices of responses: the text formats, the own one and the part of jconvolver's configuration that describes the
 * routes; and the sum of the entries that they and brutefir.c read into routes.
 */
#include "matrix.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/finite.h"

#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text -------------------------------------------------------------------------------------------------------- */

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
    static const char *const ports[] = {"/input/name", "/output/name", "/jack/"};
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
        if (strncmp(line[0], ports[i], strlen(ports[i])) == 0) {
            gc_matrix_ignore(m, i < 2 ? "names of ports" : "settings of JACK");
            return GPUCONV_OK;
        }
    return gc_matrix_fail(m, error,
                          "unknown command '%s'; known are /cd, /convolver/new, /impulse/read, /impulse/dirac, "
                          "/impulse/hilbert, /impulse/copy and /impulse/packedmatrix",
                          line[0]);
}

/* Reads the entries of a text; `jconvolver` selects the grammar. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status matrix_read_text(gc_matrix *m, gc_lines *lines, bool jconvolver, gpuconv_error *error) {
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

enum {
    MAX_DELAY = 1 << 28 /* frames, 1.5 hours at 48 kHz: a delay takes memory, of which a short text must not ask for any
                           amount */
};

/* ---- From entries to a response ---------------------------------------------------------------------------------- */

/* The taps of an entry, and the frame of its route to which the first of them is added. */
typedef struct placement {
    const float *taps;
    int64_t at, frames; /* at may be negative: before time zero */
    int64_t ring;       /* frames of these that resampling appended, which may lie behind the declared length */
    int64_t cut;        /* frames behind the declared length, which are left out */
} placement;

/* Finds the taps of an entry with a file. Times in frames are those of the file, whose rate may be another. Returns
 * FORMAT, MEMORY, CANCELLED, ARGUMENT. */
static gpuconv_status place_file(gc_matrix *m, const gc_matrix_entry *e, placement *p, gpuconv_error *error) {
    const gc_matrix_file *file = &m->file[e->file];
    const gpuconv_ir *ir = file->ir;
    const double unit = e->in_seconds ? ir->rate : 1;
    if (e->offset * unit > 0x1p40 || e->length * unit > 0x1p40)
        return gc_matrix_fail(m, error, "offset or length is longer than any response");
    int64_t from = llrint(e->offset * unit);
    if (e->channel >= ir->planes)
        return gc_matrix_fail(m, error, "%s has %d channel%s, not %d", file->path, ir->planes,
                              ir->planes == 1 ? "" : "s", e->channel + 1);
    if (from >= ir->frames)
        return gc_matrix_fail(m, error, "%s has only %lld frames; the offset is %lld", file->path,
                              (long long)ir->frames, (long long)from);
    p->frames = llrint(e->length * unit);
    p->frames = p->frames ? gc_min(p->frames, ir->frames - from) : ir->frames - from;
    if (ir->rate != m->rate) {
        gpuconv_status status = gc_matrix_convert_part(m, e->file, from, p->frames, &ir, error);
        if (status)
            return status;
        from = 0;
        p->frames = ir->frames;
        p->ring = ir->ring;
    }
    p->taps = gc_ir_plane(ir, e->channel) + from;
    p->at -= ir->lead;
    return GPUCONV_OK;
}

/* Places an entry and checks its times against its file and the declared length. Returns as place_file. */
static gpuconv_status place_entry(gc_matrix *m, const gc_matrix_entry *e, placement *p, gpuconv_error *error) {
    static const float one = 1;
    const double delay = e->delay * (e->in_seconds ? m->rate : 1);
    m->line = e->line; /* for messages */
    if (delay > MAX_DELAY)
        return gc_matrix_fail(m, error, "a delay of %.0f frames is more than %d", delay, MAX_DELAY);
    *p = (placement){&one, llrint(delay), 1, 0, 0};
    if (m->max_frames && p->at >= m->max_frames)
        return gc_matrix_fail(
            m, error,
            "a delay of %lld frames lies behind the %lld frames of /convolver/new; declare more frames or "
            "remove the line",
            (long long)p->at, (long long)m->max_frames);
    gpuconv_status status = GPUCONV_OK;
    const gpuconv_ir *hilbert;
    if (e->file >= 0) {
        status = place_file(m, e, p, error);
    } else if (e->length > 0) {
        status = gc_matrix_make_hilbert(m, (int64_t)e->length, &hilbert, error);
        p->frames = (int64_t)e->length;
        p->taps = status ? NULL : gc_ir_plane(hilbert, 0);
    }
    if (!status && m->max_frames && p->frames - p->ring > m->max_frames - p->at) {
        p->cut = p->frames - p->ring - (m->max_frames - p->at);
        p->frames = m->max_frames - p->at;
    }
    return status;
}

/* The routes of a matrix while their taps are summed. */
typedef struct summing {
    const gc_matrix *matrix;
    const placement *place; /* of each entry */
    const int64_t *first;   /* the first entry of each route, and the number of entries */
    gpuconv_ir *made;
    atomic_bool infinite; /* a sum is beyond the range of floats */
} summing;

/* Writes the frames of an entry to the taps from `to` on; with `add`, adds them to these taps. */
static void place_taps(const placement *p, double factor, bool add, float *to) {
    if (add)
        for (int64_t k = 0; k < p->frames; k++)
            to[k] += (float)(factor * (double)p->taps[k]);
    else
        for (int64_t k = 0; k < p->frames; k++)
            to[k] = (float)(factor * (double)p->taps[k]);
}

/* Sums the entries of one route. */
static void sum_route(void *context, int64_t route, int worker) {
    (void)worker;
    summing *s = context;
    const int64_t frames = s->made->frames, first = s->first[route];
    float *to = s->made->taps + route * frames;
    for (int64_t i = first; i < s->first[route + 1]; i++) {
        const placement *p = &s->place[i];
        const int64_t at = s->made->lead + p->at;
        if (i == first) {
            memset(to, 0, (size_t)at * sizeof *to);
            memset(to + at + p->frames, 0, (size_t)(frames - at - p->frames) * sizeof *to);
        }
        place_taps(p, s->matrix->entry[i].factor, i > first, to + at);
        if (!gc_all_finite(to + at, p->frames))
            atomic_store(&s->infinite, true);
    }
}

/* Sums all routes on all cores. Returns FORMAT, MEMORY, CANCELLED. */
static gpuconv_status sum_routes(summing *s, gpuconv_error *error) {
    const gc_matrix *m = s->matrix;
    const bool small = (double)s->made->routes * (double)s->made->frames < 1 << 20;
    gc_pool *pool = gc_pool_new(small ? 1 : (int)gc_min(s->made->routes, gc_processor_count()));
    if (!pool)
        return gc_fail_memory(error, m->path);
    gc_pool_run(pool, sum_route, s, s->made->routes);
    gc_pool_free(pool);
    if (gc_cancelled())
        return gc_fail_cancelled(error, m->path);
    return !s->infinite ? GPUCONV_OK
                        : gc_fail(error, GPUCONV_ERROR_FORMAT,
                                  "%s: its gains take a response beyond the range of floats", m->path);
}

/* Places the entries, which are sorted, and lists their routes: `first` and `place` of *s are filled, and *made is a
 * response with the routes and without taps. *cut: frames that the declared length leaves out. Returns as place_file.
 */
static gpuconv_status place_entries(gc_matrix *m, placement *place, int64_t *first, gpuconv_ir **made, int64_t *cut,
                                    gpuconv_error *error) {
    int64_t lead = 0, end = 1;
    int routes = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        const gc_matrix_entry *e = &m->entry[i];
        gpuconv_status status = place_entry(m, e, &place[i], error);
        if (status)
            return status;
        lead = gc_max(lead, -place[i].at);
        end = gc_max(end, place[i].at + place[i].frames);
        *cut = gc_max(*cut, place[i].cut);
        if (i == 0 || e->input != e[-1].input || e->output != e[-1].output)
            first[routes++] = i;
    }
    first[routes] = m->entries;
    gpuconv_error inner;
    if (gc_ir_check_memory(routes, (double)(lead + end), 0, &inner))
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "%s: %s", m->path, inner.message);
    *made = gc_ir_unfilled(m->inputs, m->outputs, routes, routes, lead + end, m->rate);
    if (!*made)
        return gc_fail_memory(error, m->path);
    (*made)->lead = lead;
    (*made)->routed = true;
    for (int r = 0; r < routes; r++)
        (*made)->route[r] = (gc_route){m->entry[first[r]].input, m->entry[first[r]].output, r};
    return GPUCONV_OK;
}

/* Sums the entries into a routed response. Returns as place_file. */
static gpuconv_status build(gc_matrix *m, gpuconv_ir **ir, gpuconv_error *error) {
    if (m->entries == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no route", m->path);
    qsort(m->entry, (size_t)m->entries, sizeof *m->entry, gc_matrix_compare);
    placement *place = gc_calloc(m->entries, sizeof *place);
    int64_t *first = gc_calloc(m->entries + 1, sizeof *first), cut = 0;
    summing s = {.matrix = m, .place = place, .first = first};
    gpuconv_status status =
        place && first ? place_entries(m, place, first, &s.made, &cut, error) : gc_fail_memory(error, m->path);
    if (!status)
        status = sum_routes(&s, error);
    free(place);
    free(first);
    if (status) {
        gpuconv_ir_free(s.made);
        return status;
    }
    char converted[64] = "", left_out[96] = "";
    if (m->resampled)
        gc_format(converted, sizeof converted, ", files of other rates resampled to %g Hz", m->rate);
    if (cut)
        (void)snprintf(left_out, sizeof left_out, ", up to %lld frames beyond the %lld declared left out",
                       (long long)cut, (long long)m->max_frames);
    return gc_ir_finish(s.made, ir, error, "%d inputs x %d outputs, %d routes%s%s%s%s", m->inputs, m->outputs,
                        s.made->routes, converted, left_out, *m->ignored ? "; ignored:" : "",
                        *m->ignored ? m->ignored + 1 : "");
}

/* Returns whether a configuration is one of BruteFIR: its first word is not a command of jconvolver, which begins with
 * a slash. */
static bool is_brutefir(const char *text, int64_t length) {
    bool comment = false;
    for (int64_t i = 0; i < length; i++) {
        comment = text[i] == '#' || (comment && !strchr("\r\n", text[i]));
        if (!comment && !strchr(" \t\r\n", text[i]))
            return isalpha((unsigned char)text[i]) || text[i] == '"';
    }
    return false;
}

/* Reads the entries of the file in any of its three formats. */
static gpuconv_status read_entries(gc_matrix *m, gpuconv_error *error) {
    gc_lines lines;
    const char *text = NULL;
    const bool conf = gc_ending_find(m->path, "conf") == 0;
    int64_t length = 0;
    gpuconv_status status = gc_lines_open_regular(&lines, m->path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status && conf)
        status = gc_lines_peek(&lines, GC_TEXT_LONGEST, &text, &length, error);
    if (!status)
        status = is_brutefir(text, length) ? gc_matrix_read_brutefir(m, &lines, error)
                                           : matrix_read_text(m, &lines, conf, error);
    gc_lines_close(&lines);
    return status;
}

/* Reads the text of a matrix. `rate` is that of a response without files. The caller frees *matrix, also after a
 * failure. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_matrix(const char *path, double rate, double file_rate, gc_matrix **matrix,
                                  gpuconv_error *error) {
    gc_matrix *m = *matrix = gc_calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/');
    if (m) {
        m->home = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
        m->folder = m->home ? strdup(m->home) : NULL;
    }
    gpuconv_status status = m && m->folder ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        m->path = path;
        m->rate_without_files = rate;
        m->file_rate = file_rate;
        status = read_entries(m, error);
    }
    return status;
}

static void free_matrix(gc_matrix *m) {
    if (!m)
        return;
    gc_matrix_free_files(m);
    free(m->home);
    free(m->folder);
    free(m->entry);
    free(m->copy);
    free(m);
}

void gc_matrix_visit_files(const char *path, gc_file_visit *visit, void *context) {
    gc_matrix *m;
    gpuconv_error ignored;
    (void)read_matrix(path, 1, 1, &m, &ignored);
    for (int i = 0; m && i < m->files; i++)
        visit(context, m->file[i].path);
    free_matrix(m);
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    return gc_matrix_load(path, rate, 0, ir, error);
}

gpuconv_status gc_matrix_load(const char *path, double rate, double file_rate, gpuconv_ir **ir, gpuconv_error *error) {
    gc_matrix *m;
    gpuconv_status status = read_matrix(path, rate, file_rate, &m, error);
    if (!status)
        status = gc_matrix_load_files(m, error);
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    free_matrix(m);
    return status;
}
