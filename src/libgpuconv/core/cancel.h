/* Cancellation of long work. Each thread has at most one flag, installed by gpuconv_cancel_set. A loop that may run
 * longer than about ten milliseconds calls gc_cancelled() between its steps and returns early once the flag is raised.
 * A worker thread installs the flag of the thread that started it.
 *
 * Objects that block on a descriptor (core/descriptor.h, core/files.h, audio/file.h) have a pointer to a flag of
 * their own instead. One thread makes them and another one reads or writes, and the flags may differ: the player raises
 * one flag to end its reader thread while the thread that calls the player goes on. Code that makes such an object for
 * the work of its own thread passes gc_cancel_flag(). */
#ifndef GC_CORE_CANCEL_H
#define GC_CORE_CANCEL_H

#include "gpuconv.h"

/* Returns the calling thread's flag, or NULL if the thread has none. */
const volatile int *gc_cancel_flag(void);

/* Returns true if the calling thread has a flag and it is raised. */
bool gc_cancelled(void);

/* Returns true if there is a flag and it is raised. Another thread or a signal handler may raise it at any time. */
static inline bool gc_flag_is_raised(const volatile int *flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Raises a flag. Safe in a signal handler. */
static inline void gc_flag_raise(volatile int *flag) { /* NOLINT(readability-non-const-parameter): stored through */
    __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

#endif
