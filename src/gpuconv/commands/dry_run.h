/* `gpuconv batch --dry-run`. */
#ifndef GPUCONV_COMMANDS_DRY_RUN_H
#define GPUCONV_COMMANDS_DRY_RUN_H

#include "gpuconv/batch/manifest.h"

/* Prints the first rows of a manifest as they would be done, and the number of all and of those that are refused.
 * @return GC_EXIT_DONE, or GC_EXIT_FAILED if every row is refused */
int gc_dry_run(const gc_manifest *manifest, const char *folder, int64_t shard_size);

#endif
