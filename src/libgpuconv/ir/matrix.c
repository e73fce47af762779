/*
 * Sparse matrices of responses: the files and entries that matrix_text.c reads, and their sum into routes.
 */
#include "matrix.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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

char *gc_matrix_join_path(const char *folder, const char *name, const char *suffix) {
    size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 1;
    char *path = gc_calloc((int64_t)size, 1);
    if (path)
        (void)snprintf(path, size, "%s%s%s", *name == '/' ? "" : folder, name, suffix);
    return path;
}

gpuconv_status gc_matrix_find_file(gc_matrix *m, const char *name, int *index, gpuconv_error *error) {
    char *path = gc_matrix_join_path(m->folder, name, "");
    if (!path)
        return gc_fail_memory(error, m->path);
    for (int f = 0; f < m->files; f++)
        if (strcmp(m->file[f].path, path) == 0) {
            free(path);
            *index = f;
            return GPUCONV_OK;
        }
    gpuconv_error inner = {0};
    gpuconv_ir *ir = NULL;
    gpuconv_status status = m->files < GC_MATRIX_MAX_FILES ? gpuconv_ir_load(path, &ir, &inner) : GPUCONV_ERROR_FORMAT;
    if (status) {
        free(path);
        if (status == GPUCONV_ERROR_MEMORY)
            return gc_fail_memory(error, m->path);
        gc_fail(error, status, "%s, line %d: %s", m->path, m->line,
                *inner.message ? inner.message : "more than 4096 files");
        return status;
    }
    if (m->rate > 0 && gpuconv_ir_rate(ir) != m->rate) {
        gpuconv_ir *other;
        status = gpuconv_ir_resample(ir, m->rate, &other, error);
        gpuconv_ir_free(ir);
        ir = other;
    }
    if (status) {
        free(path);
        return status;
    }
    m->rate = gpuconv_ir_rate(ir);
    m->file[m->files] = (gc_matrix_file){path, ir};
    *index = m->files++;
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

/* Sums the entries into a routed response. Returns FORMAT, MEMORY. */
static gpuconv_status build(gc_matrix *m, gpuconv_ir **ir, gpuconv_error *error) {
    int64_t lead = 0, end = 1, cut = 0;
    int routes = 0;
    gpuconv_status status = GPUCONV_OK;
    if (m->entries == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: contains no route", m->path);
    qsort(m->entry, (size_t)m->entries, sizeof *m->entry, compare_routes);
    for (int64_t i = 0; i < m->entries && !status; i++) {
        const gc_matrix_entry *e = &m->entry[i];
        placement p = {0};
        status = place_entry(m, e, &p, error);
        lead = gc_max(lead, -p.at);
        end = gc_max(end, p.at + p.frames);
        cut = gc_max(cut, p.cut);
        routes += i == 0 || e->input != e[-1].input || e->output != e[-1].output;
    }
    if (status)
        return status;
    gpuconv_ir *made = gc_ir_blank(m->inputs, m->outputs, routes, routes, lead + end, m->rate);
    if (!made)
        return gc_fail_memory(error, m->path);
    made->lead = lead;
    made->routed = true;
    bool finite = true;
    for (int64_t i = 0, r = -1; i < m->entries; i++) {
        const gc_matrix_entry *e = &m->entry[i];
        placement p = {0};
        r += i == 0 || e->input != e[-1].input || e->output != e[-1].output;
        made->route[r] = (gc_route){e->input, e->output, (int)r};
        float *to = made->taps + r * made->frames + lead;
        const float one = 1, *from = e->file < 0 ? &one : gc_ir_plane(m->file[e->file].ir, e->channel);
        (void)place_entry(m, e, &p, NULL);
        for (int64_t k = 0; k < p.frames; k++) {
            to[p.at + k] += (float)(e->factor * (double)from[p.from + k]);
            finite &= isfinite(to[p.at + k]) != 0;
        }
    }
    if (!finite) {
        gpuconv_ir_free(made);
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its gains take a response beyond the range of floats",
                       m->path);
    }
    char left_out[96] = "";
    if (cut)
        (void)snprintf(left_out, sizeof left_out, ", up to %lld frames beyond the %lld declared left out",
                       (long long)cut, (long long)m->max_frames);
    return gc_ir_finish(made, ir, error, "%d inputs x %d outputs, %d routes%s", m->inputs, m->outputs, routes,
                        left_out);
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    *ir = NULL;
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f || fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, f ? "is a directory" : strerror(errno));
        if (f)
            (void)fclose(f);
        return GPUCONV_ERROR_FILE;
    }
    gc_matrix *m = gc_calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    if (m)
        m->folder = strndup(path, folder);
    gpuconv_status status = m && m->folder ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        m->path = path;
        status = gc_matrix_read_text(m, f, dot && strcasecmp(dot, ".conf") == 0, error);
    }
    (void)fclose(f); /* read only: nothing can be lost */
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    for (int i = 0; m && i < m->files; i++) {
        free(m->file[i].path);
        gpuconv_ir_free(m->file[i].ir);
    }
    if (m) {
        free(m->folder);
        free(m->entry);
    }
    free(m);
    return status;
}
