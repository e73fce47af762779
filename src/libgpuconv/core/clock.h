/* The host clock that all code uses: monotonic time in seconds. */
#ifndef GC_CORE_CLOCK_H
#define GC_CORE_CLOCK_H

#include <time.h>

static inline double gc_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
