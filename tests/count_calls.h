/* Counts the calls of the allocator, of locks and of sleeping that a thread makes while `in_callback` is true. The test
 * that includes this is linked with --wrap for each function (tests/CMakeLists.txt). */
#ifndef TESTS_COUNT_CALLS_H
#define TESTS_COUNT_CALLS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static _Thread_local bool in_callback;
static _Atomic int calls;

#define WATCH(result, name, parameters, arguments)                                                                     \
    result __real_##name parameters;                                                                                   \
    result __wrap_##name parameters;                                                                                   \
    result __wrap_##name parameters {                                                                                  \
        if (in_callback)                                                                                               \
            atomic_fetch_add(&calls, 1);                                                                               \
        return __real_##name arguments;                                                                                \
    }

WATCH(void *, malloc, (size_t n), (n))
WATCH(void *, calloc, (size_t n, size_t m), (n, m))
WATCH(void *, realloc, (void *p, size_t n), (p, n))
WATCH(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WATCH(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WATCH(void, free, (void *p), (p))
WATCH(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WATCH(int, pthread_cond_signal, (pthread_cond_t * c), (c))
WATCH(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left))

#endif
