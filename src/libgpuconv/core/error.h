/* Status and message travel together: a function that fails fills both in one expression and returns the status. */
#ifndef GC_CORE_ERROR_H
#define GC_CORE_ERROR_H

#include "gpuconv.h"

/* Stores status and message in *error (NULL is legal) and returns the status. The message is one line of valid UTF-8:
 * control characters and invalid bytes of file names become escapes, and a text that is too long is shortened in the
 * middle (visible.h), so that the reason at its end is kept. */
gpuconv_status gc_fail(gpuconv_error *error, gpuconv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* gc_fail for exhausted memory, naming what was wanted; CANCELLED where the thread's flag is raised, since work that
 * was cancelled and memory that was not to be had come back alike: as NULL or false. */
gpuconv_status gc_fail_memory(gpuconv_error *error, const char *what);

#endif
