/* What entries of a manifest have in common. */
#ifndef GC_BATCH_TWINS_H
#define GC_BATCH_TWINS_H

#include "manifest.h"

/* Makes every entry wrong whose output an earlier one has, and marks those that share their response. MEMORY. */
gpuconv_status gc_find_twins(gc_manifest *manifest, gpuconv_error *error);

#endif
