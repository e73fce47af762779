/* Private interface between the manifest's parsers and its entries. */
#ifndef GPUCONV_BATCH_MANIFEST_ENTRY_H
#define GPUCONV_BATCH_MANIFEST_ENTRY_H

#include "manifest.h"

enum {
    GC_COLUMN_INPUT,
    GC_COLUMN_RESPONSE,
    GC_COLUMN_OUTPUT,
    GC_COLUMN_GAIN,
    GC_COLUMN_WET,
    GC_COLUMN_DRY,
    GC_COLUMN_OFFSET,
    GC_COLUMN_LENGTH,
    GC_COLUMN_SEED,
    GC_COLUMNS
};

/* The columns' names. */
extern const char *const gc_columns[GC_COLUMNS];

/* Appends an entry with default values. *capacity: of manifest->entry. NULL: out of memory. */
gc_entry *gc_manifest_add(gc_manifest *manifest, int64_t *capacity, int64_t line);

/* Sets a field from its text, and refuses the entry if that is invalid. An empty text leaves the default. @return
 * false: out of memory */
bool gc_entry_set(gc_entry *entry, int column, const char *text);

/* Completes an entry after its last field: derives a missing output, and refuses the entry if its fields are missing or
 * invalid. @return false: out of memory */
bool gc_entry_complete(gc_entry *entry);

/* Finds a file's name without folders and extension. */
void gc_path_stem(const char *path, const char **from, int *length);

/* Parse a text, which they change, into entries; `path` is used in messages. Fail with FORMAT (columns) or MEMORY. */
gpuconv_status gc_manifest_parse_csv(const char *path, char *text, gc_manifest *manifest, gpuconv_error *error);
gpuconv_status gc_manifest_parse_jsonl(const char *path, char *text, gc_manifest *manifest, gpuconv_error *error);

#endif
