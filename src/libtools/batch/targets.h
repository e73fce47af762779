/* Conflicts between the files of a batch. What it reads lies outside of its folder, and what it writes lies inside, so
 * that no output is an input, whatever the order of processing. */
#ifndef GPUCONV_BATCH_TARGETS_H
#define GPUCONV_BATCH_TARGETS_H

#include "own_files.h"

/* Checks that no input, response (also in series, or named by a matrix), noise or list lies in the folder of the
 * outputs, whatever links lead to it, but for lists that an earlier batch wrote there and this one does not replace.
 * Refuses entries whose output has the name of a file of the batch itself, or lies behind a link within the folder.
 * Names of outputs that differ only in case count as different, also on file systems that ignore case.
 *
 * @param threads  for access to the file system
 * @return ARGUMENT (a file that is read lies in the folder), MEMORY, CANCELLED (the thread's flag, core/cancel.h, is
 *         raised: no entry is refused) */
gpuconv_status gc_refuse_conflicts(gc_manifest *manifest, const gc_own_files *own, int threads, gpuconv_error *error);

#endif
