/* Numbers that look like noise, the same everywhere. */
#ifndef GC_CORE_RANDOM_H
#define GC_CORE_RANDOM_H

#include <stdint.h>

/* The next of a sequence within -0.5 and 0.5; *state is not 0. xorshift64* (Vigna, An experimental exploration of
 * Marsaglia's xorshift generators, scrambled, 2016). */
static inline double gc_noise_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)(*state * UINT64_C(2685821657736338717) >> 11) * 0x1p-53 - 0.5;
}

#endif
