/* Preparation of responses: reading, editing and routing in one call. */
#ifndef GC_IR_PREPARE_H
#define GC_IR_PREPARE_H

#include "gpuconv.h"

/* Does what gpuconv_ir_prepare does, of a file or pipe that can be interrupted; `cancel` may be NULL. CANCELLED. */
gpuconv_status gc_ir_prepare(const char *path, const gpuconv_preparation *preparation, int inputs, double rate,
                             const volatile int *cancel, gpuconv_ir **ir, gpuconv_error *error);

/* Returns whether a response of this name is read as a matrix, which names further files. */
bool gc_is_matrix(const char *path);

/* Checks every value of a preparation. ARGUMENT */
gpuconv_status gc_preparation_check(const gpuconv_preparation *preparation, gpuconv_error *error);

#endif
