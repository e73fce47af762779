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
