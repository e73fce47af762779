/* What entries of a manifest have in common. */
#ifndef GPUCONV_BATCH_DUPLICATES_H
#define GPUCONV_BATCH_DUPLICATES_H

#include "manifest.h"

/* Makes every entry wrong whose output an earlier one has, and marks those that share their response. MEMORY. */
gpuconv_status gc_find_duplicates(gc_manifest *manifest, gpuconv_error *error);

#endif
