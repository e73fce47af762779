/* Opening of files that are read as a whole, such as responses. Only regular files are opened, after following links: a
 * pipe or a device could block the caller, or never end. */
#ifndef GC_CORE_INPUT_FILE_H
#define GC_CORE_INPUT_FILE_H

#include "gpuconv.h"

#include <sys/stat.h>

/* Opens a regular file without waiting; *size gets its bytes. @return a descriptor; -1 after an error (FILE) */
int gc_input_file_open(const char *path, int64_t *size, gpuconv_error *error);

/* Checks the type of an open file. @return FILE if it is not a regular file */
gpuconv_status gc_input_file_check(const char *path, const struct stat *st, gpuconv_error *error);

#endif
