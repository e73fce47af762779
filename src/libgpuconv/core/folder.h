/* Folders on the way to a file. */
#ifndef GC_CORE_FOLDER_H
#define GC_CORE_FOLDER_H

#include "gpuconv.h"

/* Makes the folders above a path, as far as they are missing; a path that ends in a slash is a folder itself. FILE,
 * MEMORY. */
gpuconv_status gc_make_folders(const char *path, gpuconv_error *error);

#endif
