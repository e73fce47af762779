/* Creating the folders that lead to a file. */
#ifndef GC_CORE_FOLDER_H
#define GC_CORE_FOLDER_H

#include "gpuconv.h"

/* Creates the missing parent folders of `path`; of a path that ends in a slash, every component is a folder.
 * @return FILE, MEMORY */
gpuconv_status gc_create_parent_folders(const char *path, gpuconv_error *error);

#endif
