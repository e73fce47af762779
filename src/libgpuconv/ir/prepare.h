/* Preparation of responses: reading, editing and routing in one call. */
#ifndef GC_IR_PREPARE_H
#define GC_IR_PREPARE_H

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"

/* The source of a response. */
typedef struct gc_response_source {
    const char *path;
    gc_input_kind kind;      /* the kinds of files that `path` may be; all others that are named are regular files */
    const gpuconv_sofa *set; /* the open set of that path; NULL: the file is read */
    gpuconv_ir *made;        /* the response itself, which the preparation frees; NULL: it is read */
} gc_response_source;

/* Does what gpuconv_ir_prepare does without the last steps: gain, wet and dry are checked and not applied. */
gpuconv_status gc_ir_prepare_shape(const gc_response_source *from, const gpuconv_preparation *preparation, int inputs,
                                   double rate, gpuconv_ir **ir, gpuconv_error *error);

/* As gpuconv_ir_prepare. */
gpuconv_status gc_ir_prepare(const gc_response_source *from, const gpuconv_preparation *preparation, int inputs,
                             double rate, gpuconv_ir **ir, gpuconv_error *error);

/* Applies gain, wet and dry to a routed response. *result is a reference to `ir` if they change nothing. Returns
 * ARGUMENT, MEMORY. */
gpuconv_status gc_ir_apply_levels(const gpuconv_ir *ir, const gpuconv_preparation *preparation, gpuconv_ir **result,
                                  gpuconv_error *error);

/* As gpuconv_ir_load_matrix. @param file_rate of files that state none; 0: these are refused */
gpuconv_status gc_matrix_load(const char *path, double rate, double file_rate, gpuconv_ir **ir, gpuconv_error *error);

/* Returns whether a response of this name is read as a matrix, which names further files. */
bool gc_is_matrix(const char *path);

/* Reads a caller's preparation of any version; NULL gives one that changes nothing. @return ARGUMENT */
gpuconv_status gc_preparation_read(const gpuconv_preparation *from, gpuconv_preparation *preparation,
                                   gpuconv_error *error);

/* Checks every value of a preparation. Returns ARGUMENT. */
gpuconv_status gc_preparation_check(const gpuconv_preparation *preparation, gpuconv_error *error);

#endif
