/* The cancellation flag of each thread, in thread-local storage. */
#include "cancel.h"

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
