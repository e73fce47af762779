/* Allocation with checked sizes. Everything is aligned for the widest vectors and can be freed with free(). */
#ifndef GC_CORE_MEMORY_H
#define GC_CORE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum { GC_ALIGNMENT = 64 };

/* count x size bytes, zeroed, aligned to GC_ALIGNMENT; NULL when it overflows, is negative or is not to be had. */
void *gc_calloc(int64_t count, int64_t size);

/* The least multiple of `step` (> 0) that is >= n (>= 0). */
static inline int64_t gc_round_up(int64_t n, int64_t step) {
    return (n + step - 1) / step * step;
}

static inline int64_t gc_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t gc_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The least power of two >= n, for n <= 2^62. */
static inline int64_t gc_power_of_two(int64_t n) {
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

#endif
