/* `gpuconv batch --dry-run`. */
#ifndef GPUCONV_COMMANDS_DRY_RUN_H
#define GPUCONV_COMMANDS_DRY_RUN_H

#include "libtools/batch/run/batch.h"

/* Prints the first rows of a batch as they would be done, and the number of all and of those that are refused.
 * @return GC_EXIT_DONE, GC_EXIT_FAILED if every row is refused, or GC_EXIT_USAGE if the batch is refused */
int gc_dry_run(const gc_batch *batch);

#endif
