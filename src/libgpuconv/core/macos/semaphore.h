/* Semaphores of one process: macOS has those of POSIX between processes only. */
#ifndef GC_CORE_MACOS_SEMAPHORE_H
#define GC_CORE_MACOS_SEMAPHORE_H

#include <dispatch/dispatch.h>

typedef dispatch_semaphore_t sem_t;

/* @return 0; -1 without memory */
static inline int sem_init(sem_t *s, int shared, unsigned value) {
    (void)shared;
    *s = dispatch_semaphore_create((intptr_t)value);
    return *s ? 0 : -1;
}

static inline int sem_wait(sem_t *s) {
    return dispatch_semaphore_wait(*s, DISPATCH_TIME_FOREVER) == 0 ? 0 : -1;
}

static inline int sem_post(sem_t *s) {
    (void)dispatch_semaphore_signal(*s);
    return 0;
}

static inline int sem_destroy(sem_t *s) {
    dispatch_release(*s);
    return 0;
}

#endif
