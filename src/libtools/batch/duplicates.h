/* Duplicate outputs and shared responses in a manifest. */
#ifndef GPUCONV_BATCH_DUPLICATES_H
#define GPUCONV_BATCH_DUPLICATES_H

#include "manifest.h"

/* Refuses every entry whose output an earlier entry names, and marks the entries that share a response. Fails with
 * MEMORY. */
gpuconv_status gc_find_duplicates(gc_manifest *manifest, gpuconv_error *error);

#endif
