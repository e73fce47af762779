/* Status and message travel together: a function that fails fills both in one expression and returns the status. */
#ifndef GC_CORE_ERROR_H
#define GC_CORE_ERROR_H

#include "gpuconv.h"

/* Stores status and message in *error (NULL is legal) and returns the status. */
gpuconv_status gc_fail(gpuconv_error *error, gpuconv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* gc_fail for exhausted memory, naming what was wanted. */
gpuconv_status gc_fail_memory(gpuconv_error *error, const char *what);

#endif
