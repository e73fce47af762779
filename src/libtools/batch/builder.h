/* Builder: turns the rows of any list into the entries of a manifest. It picks the responses and noises that a row does
 * not name. */
#ifndef GPUCONV_BATCH_BUILDER_H
#define GPUCONV_BATCH_BUILDER_H

#include "choices.h"
#include "row.h"

typedef struct gc_builder {
    gc_manifest *manifest;
    int64_t capacity;
    gc_manifest_options options;
    gc_choices responses, noises;
    uint64_t state, noise_state, seed_state; /* of the three sequences of draws */
    int64_t rows, refused;                   /* refused: entries */
} gc_builder;

/* Begins an empty manifest and lists the choices. Fails as gc_choices_find. */
gpuconv_status gc_builder_begin(gc_builder *builder, const gc_manifest_options *options, gc_manifest *manifest,
                                gpuconv_error *error);

/* Adds one entry, or with GC_PICK_ALL one for each response, and clears the row. line 0: the entry's line in the
 * manifest that gc_manifest_print will write. Fails with FORMAT (too many rows, or too many that are refused) or
 * MEMORY. */
gpuconv_status gc_builder_add(gc_builder *builder, gc_row *row, int64_t line, gpuconv_error *error);

/* Frees the choices. On success, refuses doubled outputs; after a failure `status`, frees the manifest. `name`: of the
 * list, in messages. @return `status`, FORMAT (no entries) or MEMORY */
gpuconv_status gc_builder_end(gc_builder *builder, const char *name, gpuconv_status status, gpuconv_error *error);

#endif
