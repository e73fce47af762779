/* Tables of Kaldi: reading, sorting, finding. */
#include "kaldi_table.h"

#include "kaldi.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "text_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gc_kaldi_table_add(gc_kaldi_table *t, const char *id, const char *value) {
    const size_t length = strlen(id) + 1, room = length + strlen(value) + 1;
    if (t->count == t->capacity) {
        gc_kaldi_line *larger = realloc(t->line, (size_t)(t->capacity = gc_max(64, 2 * t->capacity)) * sizeof *larger);
        if (!larger)
            return false;
        t->line = larger;
    }
    char *copy = malloc(room);
    if (copy) {
        memcpy(copy, id, length);
        memcpy(copy + length, value, room - length);
        t->line[t->count++] = (gc_kaldi_line){copy, copy + length};
    }
    return copy != NULL;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const gc_kaldi_line *)a)->id, ((const gc_kaldi_line *)b)->id);
}

void gc_kaldi_table_sort(gc_kaldi_table *t) {
    if (t->count > 0)
        qsort(t->line, (size_t)t->count, sizeof *t->line, compare);
}

gpuconv_status gc_kaldi_table_read(gc_kaldi_table *t, const char *path, bool *exists, gpuconv_error *error) {
    static char empty[] = "";
    gc_text_file *file;
    char *line, *id, *value;
    *exists = access(path, F_OK) == 0;
    if (!*exists)
        return GPUCONV_OK;
    gpuconv_status status = gc_text_file_open(path, &file, error);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line) {
        if (!gc_kaldi_split(line, &id, &value)) { /* an utterance without words */
            id[strcspn(id, GC_KALDI_BLANKS)] = '\0';
            value = empty;
        }
        if (*id && !gc_kaldi_table_add(t, id, value))
            status = gc_fail_memory(error, path);
    }
    gc_text_file_close(file);
    gc_kaldi_table_sort(t);
    return status;
}

/* Compares an identifier with that of a line. */
static int compare_id(const void *id, const void *line) {
    return strcmp(id, ((const gc_kaldi_line *)line)->id);
}

const char *gc_kaldi_table_find(const gc_kaldi_table *t, const char *id) {
    const gc_kaldi_line *found = t->count ? bsearch(id, t->line, (size_t)t->count, sizeof *t->line, compare_id) : NULL;
    return found ? found->value : NULL;
}

void gc_kaldi_table_free(gc_kaldi_table *t) {
    for (int64_t i = 0; i < t->count; i++)
        free(t->line[i].id);
    free(t->line);
    *t = (gc_kaldi_table){NULL, 0, 0};
}
