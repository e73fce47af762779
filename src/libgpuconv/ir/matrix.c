/*
 * Matrices of responses: the entries that matrix_text.c and brutefir.c read, and their sum into routes.
 */
#include "matrix.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/input_file.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/finite.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_ENTRIES = 1 << 16,
    MAX_DELAY = 1 << 28 /* frames, 1.5 hours at 48 kHz: a delay takes memory, of which a short text must not ask for any
                           amount */
};

gpuconv_status gc_matrix_fail(const gc_matrix *m, gpuconv_error *error, const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", m->path, m->line, text);
}

gpuconv_status gc_matrix_add(gc_matrix *m, const gc_matrix_entry *e, gpuconv_error *error) {
    if (m->entries == MAX_ENTRIES)
        return gc_matrix_fail(m, error, "more than %d routes", MAX_ENTRIES);
    if (m->entries == m->capacity) {
        int64_t capacity = m->capacity ? 2 * m->capacity : 64;
        gc_matrix_entry *larger = gc_calloc(capacity, sizeof *larger);
        if (!larger)
            return gc_fail_memory(error, m->path);
        if (m->entries)
            memcpy(larger, m->entry, (size_t)m->entries * sizeof *larger);
        free(m->entry);
        m->entry = larger;
        m->capacity = capacity;
    }
    m->entry[m->entries] = *e;
    m->entry[m->entries++].line = m->line;
    return GPUCONV_OK;
}

/* ---- From entries to a response ---------------------------------------------------------------------------------- */

/* The frames of an entry: `frames` of them from frame `from` of its file are added at frame `at` of its route. */
typedef struct placement {
    int64_t at, from, frames; /* at may be negative: before time zero */
    int64_t cut;              /* frames behind the declared length, which are left out */
} placement;

/* Converts the times of an entry to frames and checks them against its file. Returns FORMAT. */
static gpuconv_status place_entry(gc_matrix *m, const gc_matrix_entry *e, placement *p, gpuconv_error *error) {
    double unit = e->in_seconds ? m->rate : 1;
    m->line = e->line; /* for messages */
    if (e->offset * unit > 0x1p40 || e->length * unit > 0x1p40)
        return gc_matrix_fail(m, error, "offset or length is longer than any response");
    if (e->delay * unit > MAX_DELAY)
        return gc_matrix_fail(m, error, "a delay of %.0f frames is more than %d", e->delay * unit, MAX_DELAY);
    *p = (placement){llrint(e->delay * unit), llrint(e->offset * unit), llrint(e->length * unit), 0};
    if (m->max_frames && p->at >= m->max_frames)
        return gc_matrix_fail(
            m, error,
            "a delay of %lld frames lies behind the %lld frames of /convolver/new; declare more frames or "
            "remove the line",
            (long long)p->at, (long long)m->max_frames);
    if (e->file < 0) {
        p->frames = 1;
        p->from = 0;
        return GPUCONV_OK;
    }
    const gpuconv_ir *ir = m->file[e->file].ir;
    if (e->channel >= ir->planes)
        return gc_matrix_fail(m, error, "%s has %d channel%s, not %d", m->file[e->file].path, ir->planes,
                              ir->planes == 1 ? "" : "s", e->channel + 1);
    if (p->from >= ir->frames)
        return gc_matrix_fail(m, error, "%s has only %lld frames; the offset is %lld", m->file[e->file].path,
                              (long long)ir->frames, (long long)p->from);
    int64_t left = ir->frames - p->from;
    p->frames = p->frames ? gc_min(p->frames, left) : left;
    p->at -= ir->lead;
    if (m->max_frames && p->frames > m->max_frames - p->at) {
        p->cut = p->frames - (m->max_frames - p->at);
        p->frames -= p->cut;
    }
    return GPUCONV_OK;
}

static int compare_routes(const void *a, const void *b) {
    const gc_matrix_entry *x = a, *y = b;
    return x->output != y->output ? x->output - y->output
           : x->input != y->input ? x->input - y->input
                                  : x->line - y->line;
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
static void place_taps(const gc_matrix *m, const gc_matrix_entry *e, const placement *p, bool add, float *to) {
    const float one = 1, *from = e->file < 0 ? &one : gc_ir_plane(m->file[e->file].ir, e->channel) + p->from;
    if (add)
        for (int64_t k = 0; k < p->frames; k++)
            to[k] += (float)(e->factor * (double)from[k]);
    else
        for (int64_t k = 0; k < p->frames; k++)
            to[k] = (float)(e->factor * (double)from[k]);
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
        place_taps(s->matrix, &s->matrix->entry[i], p, i > first, to + at);
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
 * response with the routes and without taps. *cut: frames that the declared length leaves out. Returns FORMAT, MEMORY.
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

/* Sums the entries into a routed response. Returns FORMAT, MEMORY, CANCELLED. */
static gpuconv_status build(gc_matrix *m, gpuconv_ir **ir, gpuconv_error *error) {
    if (m->entries == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no route", m->path);
    qsort(m->entry, (size_t)m->entries, sizeof *m->entry, compare_routes);
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
    char left_out[96] = "";
    if (cut)
        (void)snprintf(left_out, sizeof left_out, ", up to %lld frames beyond the %lld declared left out",
                       (long long)cut, (long long)m->max_frames);
    return gc_ir_finish(s.made, ir, error, "%d inputs x %d outputs, %d routes%s", m->inputs, m->outputs, s.made->routes,
                        left_out);
}

/* Returns whether a configuration is one of BruteFIR: its first word is not a command of jconvolver, which begins with
 * a slash. Reads from the beginning of the file and returns there. */
static bool is_brutefir(FILE *f) {
    bool comment = false, found = false;
    int c;
    for (int count = 0; count < 1 << 16 && !found && (c = getc(f)) != EOF; count++) {
        comment = c == '#' || (comment && c != '\n');
        if (comment || strchr(" \t\r\n\xEF\xBB\xBF", c))
            continue;
        rewind(f);
        found = true;
    }
    if (!found)
        rewind(f);
    return found && (isalpha(c) || c == '"');
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    FILE *f = gc_input_file_open_text(path, error);
    if (!f)
        return GPUCONV_ERROR_FILE;
    gc_matrix *m = gc_calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    if (m)
        m->folder = strndup(path, folder);
    gpuconv_status status = m && m->folder ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        m->path = path;
        const bool conf = dot && strcasecmp(dot, ".conf") == 0;
        m->rate_without_files = rate;
        status = conf && is_brutefir(f) ? gc_matrix_read_brutefir(m, f, error) : gc_matrix_read_text(m, f, conf, error);
    }
    (void)fclose(f); /* read only: nothing can be lost */
    if (!status)
        status = gc_matrix_load_files(m, error);
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    if (m) {
        gc_matrix_free_files(m);
        free(m->folder);
        free(m->entry);
    }
    free(m);
    return status;
}
