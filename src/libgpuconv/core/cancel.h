/* Cancelling long work. Each thread has at most one flag, installed by gpuconv_cancel_set; every loop that may take
 * longer than some ten milliseconds asks gc_cancelled() between its pieces and gives up once the flag is raised.
 * Threads that are started for a piece of work install the flag of the thread that started them. */
#ifndef GC_CORE_CANCEL_H
#define GC_CORE_CANCEL_H

#include "gpuconv.h"

/* The calling thread's flag; NULL: none. */
const volatile int *gc_cancel_flag(void);

/* Whether the calling thread's flag is raised. */
bool gc_cancelled(void);

/* Fails with CANCELLED. @param what was being worked on: the message is "interrupted while working on WHAT". */
gpuconv_status gc_fail_cancelled(gpuconv_error *error, const char *what);

#endif
