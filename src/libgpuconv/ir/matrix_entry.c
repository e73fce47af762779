/* The list of entries of a matrix of responses, and the messages about its text. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"
#include "matrix.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 1 << 16 };

gpuconv_status gc_matrix_fail(const gc_matrix *m, gpuconv_error *error, const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", m->path, m->line, text);
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
