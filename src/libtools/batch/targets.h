/* Conflicts between the files of a batch: different paths that lead to the same file, which may not exist yet. */
#ifndef GPUCONV_BATCH_TARGETS_H
#define GPUCONV_BATCH_TARGETS_H

#include "own_files.h"

/* Refuses entries whose samples would depend on the order of processing, or which would replace what is read or what
 * the batch itself writes: an output that is the same file as an earlier entry's output, another entry's input, a
 * response (also in series, or named by a matrix), a noise, a list, or one of the batch's own files. An output may be
 * its own entry's input. Files are compared as they are on disk: symbolic links are followed, folders are compared by
 * device and inode, and so are existing files with several names. Names of outputs that differ only in case count as
 * different, also on file systems that ignore case.
 *
 * @param threads  for access to the file system
 * @return ARGUMENT (the batch would replace a file that it reads by one of its own), MEMORY, CANCELLED (the thread's
 *         flag, core/cancel.h, is raised: no entry is refused) */
gpuconv_status gc_refuse_conflicts(gc_manifest *manifest, const gc_own_files *own, int threads, gpuconv_error *error);

#endif
