/* Tables of Kaldi: what wav.scp, text and utt2spk say of each identifier. */
#ifndef GPUCONV_BATCH_KALDI_TABLE_H
#define GPUCONV_BATCH_KALDI_TABLE_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stdint.h>

/* A line: `id` is owned, and `value` stands in the same memory. */
typedef struct gc_kaldi_line {
    char *id;
    const char *value;
} gc_kaldi_line;

/* All zero: empty. */
typedef struct gc_kaldi_table {
    gc_kaldi_line *line;
    int64_t count, capacity;
} gc_kaldi_table;

/* Adds a line. @return false: out of memory */
bool gc_kaldi_table_add(gc_kaldi_table *table, const char *id, const char *value);

/* Adds the lines of a file and sorts the table; *exists false: there is no such file. Fails as gc_text_file_open and
 * gc_lines_next do. */
gpuconv_status gc_kaldi_table_read(gc_kaldi_table *table, const char *path, bool *exists, gpuconv_error *error);

/* Sorts the lines by identifier, as gc_kaldi_table_find needs them. */
void gc_kaldi_table_sort(gc_kaldi_table *table);

/* Returns the value of an identifier; NULL: the table does not have it. */
const char *gc_kaldi_table_find(const gc_kaldi_table *table, const char *id);

void gc_kaldi_table_free(gc_kaldi_table *table);

#endif
