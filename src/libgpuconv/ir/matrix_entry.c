/*
 * What the text of a matrix of responses says: its entries and its files. A file is listed at its first use in the
 * text; when the text has been read, all files that are listed are read, each once, on all cores.
 */
#include "matrix.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Entries ----------------------------------------------------------------------------------------------------- */

enum { MAX_ENTRIES = 1 << 16 };

gpuconv_status gc_matrix_fail(const gc_matrix *m, gpuconv_error *error, const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", m->path, m->line, text);
}

void gc_matrix_ignore(gc_matrix *m, const char *setting) {
    const size_t used = strlen(m->ignored);
    char listed[64];
    (void)snprintf(listed, sizeof listed, ", %s", setting);
    if (!strstr(m->ignored, listed))
        (void)snprintf(m->ignored + used, sizeof m->ignored - used, "%s", listed);
}

/* Makes room for one more element. Returns the elements, moved or where they were; NULL without memory. */
static void *grow(void *elements, int64_t count, int64_t *capacity, int64_t size) {
    if (count < *capacity)
        return elements;
    const int64_t larger = *capacity ? 2 * *capacity : 64;
    void *made = gc_calloc(larger, size);
    if (!made)
        return NULL;
    if (count)
        memcpy(made, elements, (size_t)(count * size));
    free(elements);
    *capacity = larger;
    return made;
}

gpuconv_status gc_matrix_add(gc_matrix *m, const gc_matrix_entry *e, gpuconv_error *error) {
    if (m->entries == MAX_ENTRIES)
        return gc_matrix_fail(m, error, "more than %d routes", MAX_ENTRIES);
    gc_matrix_entry *room = grow(m->entry, m->entries, &m->capacity, sizeof *room);
    if (!room)
        return gc_fail_memory(error, m->path);
    m->entry = room;
    m->entry[m->entries] = *e;
    m->entry[m->entries++].line = m->line;
    return GPUCONV_OK;
}

gpuconv_status gc_matrix_add_copy(gc_matrix *m, const gc_matrix_copy *c, gpuconv_error *error) {
    if (m->copies == MAX_ENTRIES)
        return gc_matrix_fail(m, error, "more than %d copies", MAX_ENTRIES);
    gc_matrix_copy *room = grow(m->copy, m->copies, &m->copy_capacity, sizeof *room);
    if (!room)
        return gc_fail_memory(error, m->path);
    m->copy = room;
    m->copy[m->copies++] = *c;
    return GPUCONV_OK;
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

int gc_matrix_compare(const void *a, const void *b) {
    const gc_matrix_entry *x = a, *y = b;
    return x->output != y->output ? x->output - y->output
           : x->input != y->input ? x->input - y->input
                                  : x->line - y->line;
}

/* Compares copies by the route that they make. */
static int compare_copies(const void *a, const void *b) {
    const gc_matrix_copy *x = a, *y = b;
    return x->output != y->output ? x->output - y->output : x->input - y->input;
}

static int compare_copies_and_lines(const void *a, const void *b) {
    const int order = compare_copies(a, b);
    return order ? order : ((const gc_matrix_copy *)a)->line - ((const gc_matrix_copy *)b)->line;
}

/* Returns the copy that makes a route; NULL: none does. */
static const gc_matrix_copy *find_copy(const gc_matrix *m, int input, int output) {
    const gc_matrix_copy key = {.input = input, .output = output};
    return bsearch(&key, m->copy, (size_t)m->copies, sizeof key, compare_copies);
}

/* Removes the entries that a copy replaces. Fails with FORMAT if one stands behind the copy. */
static gpuconv_status remove_replaced(gc_matrix *m, gpuconv_error *error) {
    int64_t kept = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        const gc_matrix_entry *e = &m->entry[i];
        const gc_matrix_copy *c = find_copy(m, e->input, e->output);
        m->line = e->line;
        if (c && e->line > c->line)
            return gc_matrix_fail(
                m, error,
                "the route %d to %d is a copy (line %d), to which jconvolver adds nothing; remove the "
                "line",
                e->input + 1, e->output + 1, c->line);
        if (!c)
            m->entry[kept++] = *e;
    }
    m->entries = kept;
    return GPUCONV_OK;
}

/* Returns the number of the first entry, which are sorted, of a route, or of what would follow it. */
static int64_t find_route(const gc_matrix *m, int64_t entries, int input, int output) {
    const gc_matrix_entry key = {.input = input, .output = output, .line = 0};
    int64_t low = 0, high = entries;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (gc_matrix_compare(&m->entry[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the entries of the route that a copy follows, also through other copies. */
static gpuconv_status fill_copy(gc_matrix *m, int64_t entries, const gc_matrix_copy *c, gpuconv_error *error) {
    const gc_matrix_copy *root = c, *next;
    m->line = c->line;
    for (int64_t steps = 0; (next = find_copy(m, root->from_input, root->from_output)) && steps <= m->copies; steps++)
        root = next;
    const int64_t first = find_route(m, entries, root->from_input, root->from_output);
    bool found = false;
    for (int64_t i = first; i < entries; i++) {
        gc_matrix_entry copy = m->entry[i];
        if (copy.input != root->from_input || copy.output != root->from_output)
            break;
        found = true;
        copy.input = c->input;
        copy.output = c->output;
        gpuconv_status status = gc_matrix_add(m, &copy, error);
        if (status)
            return status;
        m->entry[m->entries - 1].line = copy.line;
    }
    return found ? GPUCONV_OK
                 : gc_matrix_fail(m, error, "there is no route from %d to %d to copy", c->from_input + 1,
                                  c->from_output + 1);
}

gpuconv_status gc_matrix_resolve_copies(gc_matrix *m, gpuconv_error *error) {
    int64_t kept = 0;
    if (m->copies == 0)
        return GPUCONV_OK;
    qsort(m->copy, (size_t)m->copies, sizeof *m->copy, compare_copies_and_lines);
    for (int64_t i = 0; i < m->copies; i++) { /* the last copy to a route holds */
        if (kept > 0 && compare_copies(&m->copy[kept - 1], &m->copy[i]) == 0)
            kept--;
        m->copy[kept++] = m->copy[i];
    }
    m->copies = kept;
    gpuconv_status status = remove_replaced(m, error);
    const int64_t entries = m->entries;
    if (entries)
        qsort(m->entry, (size_t)entries, sizeof *m->entry, gc_matrix_compare);
    for (int64_t i = 0; i < m->copies && !status; i++)
        status = fill_copy(m, entries, &m->copy[i], error);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

enum { MAX_HILBERT = 1 << 24 };

char *gc_matrix_join_path(const char *folder, const char *name, const char *suffix) {
    size_t size = strlen(folder) + strlen(name) + strlen(suffix) + 1;
    char *path = gc_calloc((int64_t)size, 1);
    if (path)
        (void)snprintf(path, size, "%s%s%s", *name == '/' ? "" : folder, name, suffix);
    return path;
}

/* Lists a file; takes `path` and `ir` (NULL: not read yet) over, also on failure. */
static gpuconv_status list_file(gc_matrix *m, char *path, gpuconv_ir *ir, int *index, gpuconv_error *error) {
    gpuconv_status status = path ? GPUCONV_OK : gc_fail_memory(error, m->path);
    if (!status && m->files == GC_MATRIX_MAX_FILES)
        status = gc_matrix_fail(m, error, "more than %d files", GC_MATRIX_MAX_FILES);
    void **known = status ? NULL : gc_map_put(&m->by_path, path, strlen(path));
    if (!known) {
        free(path);
        gpuconv_ir_free(ir);
        return status ? status : gc_fail_memory(error, m->path);
    }
    m->file[m->files] = (gc_matrix_file){path, ir, m->line};
    *known = &m->file[m->files];
    *index = m->files++;
    return GPUCONV_OK;
}

gpuconv_status gc_matrix_find_file(gc_matrix *m, const char *name, int *index, gpuconv_error *error) {
    char *path = gc_matrix_join_path(m->folder, name, "");
    const gc_matrix_file *known = path ? gc_map_get(&m->by_path, path, strlen(path)) : NULL;
    if (!known)
        return list_file(m, path, NULL, index, error);
    free(path);
    *index = (int)(known - m->file);
    return GPUCONV_OK;
}

gpuconv_status gc_matrix_add_response(gc_matrix *m, const char *path, gpuconv_ir *ir, int *index,
                                      gpuconv_error *error) {
    return list_file(m, strdup(path), ir, index, error);
}

/* A file's response, or why there is none. */
typedef struct loaded {
    gpuconv_status status;
    gpuconv_error error;
} loaded;

typedef struct loading {
    gc_matrix *matrix;
    const int *file; /* the files to read */
    loaded *result;
} loading;

static void load(void *context, int64_t index, int worker) {
    (void)worker;
    const loading *l = context;
    gc_matrix_file *file = &l->matrix->file[l->file[index]];
    const gc_ir_form form = {.kind = GC_INPUT_REGULAR, .rate = l->matrix->file_rate};
    l->result[index].status = gc_ir_load_from(file->path, &form, &file->ir, &l->result[index].error);
}

/* Reads `count` files. Returns the error of the first one that fails. */
static gpuconv_status load_files(gc_matrix *m, const int *file, int count, gpuconv_error *error) {
    loaded *result = gc_calloc(count, sizeof *result);
    gc_pool *pool = result ? gc_pool_new((int)gc_min(count, gc_processor_count())) : NULL;
    gpuconv_status status = pool ? GPUCONV_OK : gc_fail_memory(error, m->path);
    loading l = {m, file, result};
    if (pool)
        gc_pool_run(pool, load, &l, count);
    gc_pool_free(pool);
    for (int i = 0; i < count && !status; i++) {
        status = result[i].status;
        m->line = m->file[file[i]].line; /* for messages */
        if (status == GPUCONV_ERROR_MEMORY)
            gc_fail_memory(error, m->path);
        else if (status)
            gc_fail(error, status, "%s, line %d: %s", m->path, m->line, result[i].error.message);
    }
    free(result);
    return !status && gc_cancelled() ? gc_fail_cancelled(error, m->path) : status;
}

gpuconv_status gc_matrix_load_files(gc_matrix *m, gpuconv_error *error) {
    int *file = gc_calloc(m->files, sizeof *file), count = 0;
    if (!file)
        return gc_fail_memory(error, m->path);
    for (int i = 0; i < m->files; i++)
        if (!m->file[i].ir)
            file[count++] = i;
    gpuconv_status status = count > 0 ? load_files(m, file, count, error) : GPUCONV_OK;
    free(file);
    if (!status && m->rate <= 0 && m->files > 0)
        m->rate = m->file[0].ir->rate;
    return status;
}

/* Returns a part; NULL: it was not made yet. The search begins with the newest part, which neighbouring entries share.
 */
static const gpuconv_ir *find_part(const gc_matrix *m, int file, int64_t from, int64_t frames) {
    for (int64_t i = m->parts - 1; i >= 0; i--) {
        const gc_matrix_part *p = &m->part[i];
        if (p->file == file && p->from == from && p->frames == frames)
            return p->ir;
    }
    return NULL;
}

/* Adds a part, which belongs to the matrix then, also after a failure. Returns MEMORY. */
static gpuconv_status add_part(gc_matrix *m, const gc_matrix_part *part, gpuconv_error *error) {
    gc_matrix_part *room = grow(m->part, m->parts, &m->part_capacity, sizeof *room);
    if (!room) {
        gpuconv_ir_free(part->ir);
        return gc_fail_memory(error, m->path);
    }
    m->part = room;
    m->part[m->parts++] = *part;
    return GPUCONV_OK;
}

/* Cutting comes first, because resampling mixes a frame with its neighbours. */
gpuconv_status gc_matrix_convert_part(gc_matrix *m, int file, int64_t from, int64_t frames, const gpuconv_ir **part,
                                      gpuconv_error *error) {
    if ((*part = find_part(m, file, from, frames)))
        return GPUCONV_OK;
    gpuconv_error inner = {0};
    gpuconv_ir *cut, *converted = NULL;
    gpuconv_status status = gpuconv_ir_cut(m->file[file].ir, from, frames, &cut, &inner);
    if (!status)
        status = gpuconv_ir_resample(cut, m->rate, &converted, &inner);
    gpuconv_ir_free(cut);
    if (status)
        return gc_fail(error, status, "%s, line %d: %s", m->path, m->line, inner.message);
    *part = converted;
    m->resampled = true;
    return add_part(m, &(gc_matrix_part){file, from, frames, converted}, error);
}

/* The taps are -2 / (pi i) for odd i from the middle on, times a raised cosine. */
gpuconv_status gc_matrix_make_hilbert(gc_matrix *m, int64_t frames, const gpuconv_ir **part, gpuconv_error *error) {
    static const double pi = 3.14159265358979323846;
    if ((*part = find_part(m, -1, 0, frames)))
        return GPUCONV_OK;
    if ((m->hilbert_frames += frames) > MAX_HILBERT)
        return gc_matrix_fail(m, error, "Hilbert transforms of more than %d frames in all", MAX_HILBERT);
    float *taps = gc_calloc(frames, sizeof *taps);
    const int64_t half = frames / 2;
    for (int64_t i = 1; taps && i < half; i += 2) {
        const double tap = 2 / (pi * (double)i) * (0.43 + 0.57 * cos((double)i * pi / (double)half));
        taps[half + i] = (float)-tap;
        taps[half - i] = (float)tap;
    }
    const float *const planes[] = {taps};
    gpuconv_ir *made = NULL;
    gpuconv_status status =
        taps ? gpuconv_ir_new(planes, 1, frames, m->rate, &made, error) : gc_fail_memory(error, m->path);
    free(taps);
    *part = made;
    return status ? status : add_part(m, &(gc_matrix_part){-1, 0, frames, made}, error);
}

void gc_matrix_free_files(gc_matrix *m) {
    for (int i = 0; i < m->files; i++) {
        free(m->file[i].path);
        gpuconv_ir_free(m->file[i].ir);
    }
    for (int64_t i = 0; i < m->parts; i++)
        gpuconv_ir_free(m->part[i].ir);
    free(m->part);
    gc_map_free(&m->by_path);
}
