/* Conflicts between entries of a batch: different paths that lead to the same file, which may not exist yet. */
#ifndef GPUCONV_BATCH_TARGETS_H
#define GPUCONV_BATCH_TARGETS_H

#include "manifest.h"

/* Removes `.` components and doubled slashes, in place. */
void gc_path_normalise(char *path);

/* Refuses entries whose samples would depend on the order of processing: an output that is the same file as an earlier
 * entry's output, and an output that is a response, a file that a matrix names, or another entry's input. An output may
 * be its own entry's input. Files are compared as they are on disk: symbolic links are followed, folders are compared
 * by device and inode, and so are existing files with several names. Names that differ only in case count as different,
 * also on file systems that ignore case.
 *
 * @param folder   of the outputs; must exist
 * @param threads  for access to the file system
 * @return MEMORY, CANCELLED (the thread's flag, core/cancel.h, is raised: no entry is refused) */
gpuconv_status gc_refuse_conflicts(gc_manifest *manifest, const char *folder, int threads, gpuconv_error *error);

#endif
