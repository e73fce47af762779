/* Aligned allocation with overflow checks, and arithmetic on sizes. */
#ifndef GC_CORE_MEMORY_H
#define GC_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GC_ALIGNMENT = 64 };

/* Allocates count x size zeroed bytes, aligned to GC_ALIGNMENT (enough for the widest vectors), or to
 * gc_os_alignment (core/os.h) if that is less; free() frees them.
 * @return NULL if the size is negative or overflows, if the allocation fails, if more than 64 MiB are requested and
 * gc_memory_available() is less, or if the thread's flag (cancel.h) is raised while more than 4 MiB are zeroed */
void *gc_calloc(int64_t count, int64_t size);

/* As gc_calloc, but does not write into the memory, whose contents are undefined: for large blocks that the caller
 * fills. */
void *gc_alloc(int64_t count, int64_t size);

/* Set and copy memory in pieces. Return false if the thread's flag is raised before the end of more than 4 MiB. */
bool gc_set_memory(void *to, int value, int64_t bytes);
bool gc_copy_memory(void *to, const void *from, int64_t bytes);

/* Returns the bytes that can be allocated without swapping: the lesser of MemAvailable in /proc/meminfo and the control
 * group's limit; INT64_MAX if neither is known. */
int64_t gc_memory_available(void);

/* Bytes that grow as they are appended; {0}: none. free(bytes) frees them. */
typedef struct gc_buffer {
    char *bytes; /* with a zero behind them that `length` does not count; NULL before the first append */
    size_t length, room;
} gc_buffer;

/* Appends bytes. @return false: no memory, and the buffer is as before */
bool gc_buffer_append(gc_buffer *buffer, const void *bytes, size_t count);

/* Returns the least multiple of `step` (> 0) that is >= n (>= 0). */
static inline int64_t gc_round_up(int64_t n, int64_t step) {
    return (n + step - 1) / step * step;
}

/* Returns n / by, rounded up; n >= 0, by > 0. */
static inline int64_t gc_divide_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

static inline int64_t gc_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t gc_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Returns the least power of two >= n, for n <= 2^62. */
static inline int64_t gc_power_of_two(int64_t n) {
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

#endif
