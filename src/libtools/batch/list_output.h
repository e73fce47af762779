/* Names of outputs in lists. */
#ifndef GPUCONV_BATCH_LIST_OUTPUT_H
#define GPUCONV_BATCH_LIST_OUTPUT_H

#include "manifest.h"

/* How the outputs are named in lists. */
typedef struct gc_list_output {
    const char *folder;    /* of the outputs */
    bool absolute;         /* paths begin with / */
    const char *id_suffix; /* UTF-8, follows the identifiers of lhotse's recordings, cuts and supervisions */
    int64_t shard_size;    /* of the batch */
} gc_list_output;

/* Returns the path of an entry's output, to be freed, and the name that a list calls it by. NULL: out of memory. */
char *gc_list_path(const gc_list_output *output, const gc_entry *entry, int64_t index);
const char *gc_list_id(const gc_entry *entry);

#endif
