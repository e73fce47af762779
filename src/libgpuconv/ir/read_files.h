/* The files that a response is read from, which an output must not replace. */
#ifndef GC_IR_READ_FILES_H
#define GC_IR_READ_FILES_H

#include "gpuconv.h"

typedef void gc_file_visit(void *context, const char *path);

/* Calls `visit` with the path of a response, and with those of the files that it names if it is a matrix. Reads the
 * text of a matrix, up to its first error, and no samples. */
void gc_ir_visit_files(const char *path, gc_file_visit *visit, void *context);

/* Returns whether `output` is a regular file that a response is read from, by device and inode. */
bool gc_ir_reads_file(const char *path, const char *output);

/* Checks that `output` is none of `count` files of the same job, responses or others (NULL: no file), and none that a
 * matrix among them names. @return ARGUMENT: it is one of them */
gpuconv_status gc_ir_keep_files(const char *output, const char *const *kept, int count, gpuconv_error *error);

#endif
