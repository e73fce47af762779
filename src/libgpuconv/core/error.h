/* Reporting errors: gc_fail fills a gpuconv_error and returns its status, so that a function can fail in one statement.
 */
#ifndef GC_CORE_ERROR_H
#define GC_CORE_ERROR_H

#include "gpuconv.h"

/* Stores the status and a printf-formatted message in *error (may be NULL) and returns the status. The message is one
 * line of valid UTF-8: control characters and invalid bytes of file names become escapes. A message that is too long is
 * shortened in the middle (visible.h), which keeps the file name at its beginning and the reason at its end. */
gpuconv_status gc_fail(gpuconv_error *error, gpuconv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Begins a public function that makes an object from another one: sets *made, a pointer, to NULL. Returns false, with
 * ARGUMENT and the name of the function in *error, if `made` or `from` is NULL. */
bool gc_begin(void *made, const void *from, const char *function, gpuconv_error *error);

/* Returns ARGUMENT with the message that a public function needs an argument that is NULL. */
gpuconv_status gc_fail_null(gpuconv_error *error, const char *function);

/* Returns CANCELLED with the message "interrupted while working on WHAT". */
gpuconv_status gc_fail_cancelled(gpuconv_error *error, const char *what);

/* Returns MEMORY with the message "out of memory for WHAT", or CANCELLED if the thread's flag is raised: functions that
 * return NULL or false do so both for a failed allocation and for cancelled work. */
gpuconv_status gc_fail_memory(gpuconv_error *error, const char *what);

/* Returns UNSUPPORTED with the message that `what` needs a library that this build was made without, and its package.
 */
gpuconv_status gc_fail_without(gpuconv_error *error, const char *what, const char *library, const char *package);

#endif
