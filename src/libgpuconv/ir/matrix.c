/*
 * Matrices of responses: the sum of the entries that matrix_text.c and brutefir.c read into routes.
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
    return gc_ir_finish(s.made, ir, error, "%d inputs x %d outputs, %d routes%s%s", m->inputs, m->outputs,
                        s.made->routes, converted, left_out);
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
    const char *dot = strrchr(m->path, '.'), *text = NULL;
    const bool conf = dot && gc_same_word(dot, ".conf");
    int64_t length = 0;
    gpuconv_status status = gc_lines_open_regular(&lines, m->path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status && conf)
        status = gc_lines_peek(&lines, GC_TEXT_LONGEST, &text, &length, error);
    if (!status)
        status = is_brutefir(text, length) ? gc_matrix_read_brutefir(m, &lines, error)
                                           : gc_matrix_read_text(m, &lines, conf, error);
    gc_lines_close(&lines);
    return status;
}

/* Reads the text of a matrix. `rate` is that of a response without files. The caller frees *matrix, also after a
 * failure. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status read_matrix(const char *path, double rate, gc_matrix **matrix, gpuconv_error *error) {
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
    (void)read_matrix(path, 1, &m, &ignored);
    for (int i = 0; m && i < m->files; i++)
        visit(context, m->file[i].path);
    free_matrix(m);
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    gc_matrix *m;
    if (!gc_begin(ir, path, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    gpuconv_status status = read_matrix(path, rate, &m, error);
    if (!status)
        status = gc_matrix_load_files(m, error);
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    free_matrix(m);
    return status;
}
