/* Rows of texts: setting, appending, refusing. */
#include "row.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gc_row_set(gc_row *row, int column, const char *text) {
    char *copy = strdup(text);
    free(row->text[column]);
    row->text[column] = copy;
    return copy != NULL;
}

bool gc_row_append(gc_row *row, int column, const char *text) {
    const char *before = row->text[column];
    if (!before)
        return gc_row_set(row, column, text);
    size_t size = strlen(before) + strlen(text) + 2;
    char *both = malloc(size);
    if (!both)
        return false;
    (void)snprintf(both, size, "%s|%s", before, text);
    free(row->text[column]);
    row->text[column] = both;
    return true;
}

char *gc_refusal_text(const char *what, const char *value) {
    char text[400], shown[201];
    gc_visible(shown, sizeof shown, value ? value : "");
    (void)snprintf(text, sizeof text, "%.190s%s%s%s", what, value ? " '" : "", shown, value ? "'" : "");
    return strdup(text);
}

bool gc_row_refuse(gc_row *row, const char *what, const char *value) {
    if (!row->refusal)
        row->refusal = gc_refusal_text(what, value);
    return row->refusal != NULL;
}

void gc_row_clear(gc_row *row) {
    for (int c = 0; c < GC_COLUMNS; c++)
        free(row->text[c]);
    free(row->stem);
    free(row->origin);
    free(row->refusal);
    *row = (gc_row){.stem = NULL};
}

void gc_path_stem(const char *path, const char **from, int *length) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    *from = name;
    *length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
}
