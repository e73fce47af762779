/* The cancellation flag of each thread, in thread-local storage. */
#include "cancel.h"

#include "error.h"

#include <stddef.h>

static _Thread_local const volatile int *installed;

const volatile int *gpuconv_cancel_set(const volatile int *flag) {
    const volatile int *before = installed;
    installed = flag;
    return before;
}

const volatile int *gc_cancel_flag(void) {
    return installed;
}

bool gc_cancelled(void) {
    return gc_flag_is_raised(installed);
}

gpuconv_status gc_fail_cancelled(gpuconv_error *error, const char *what) {
    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted while working on %s", what);
}
