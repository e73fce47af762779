/* Which file a path leads to, also before that file exists: entries of a batch are compared by it. */
#ifndef GPUCONV_BATCH_TARGETS_H
#define GPUCONV_BATCH_TARGETS_H

#include "manifest.h"

/* Removes `.` components and doubled slashes, in place. */
void gc_path_normalise(char *path);

/* Refuses entries whose bytes would depend on the order of work: an output that is the same file as an earlier entry's
 * output, and an output that is another entry's input or response. An output that is its own entry's input or response
 * is allowed. Files are compared by what they are on disk: symbolic links are followed and folders compared by device
 * and inode, existing files that have several names by device and inode too. Names that differ only in case count as
 * different, also on file systems that do not tell them apart. Files that a matrix names are not looked at.
 *
 * @param folder   of the outputs; exists
 * @param threads  that ask the file system
 * @return MEMORY */
gpuconv_status gc_refuse_conflicts(gc_manifest *manifest, const char *folder, int threads, gpuconv_error *error);

#endif
