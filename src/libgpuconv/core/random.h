/* The pseudo-random generator of test signals and benchmarks: the same sequence on every machine.
 *
 * Other generators remain where a change would change the bytes of outputs: splitmix64 in dsp/dither.c (dither noise),
 * xoshiro256** in gpuconv/room/synth.c (synthesised material, random segments of a batch) and the hash in
 * gpulab/types.h, which needs the n-th number without the n - 1 before it. Tests draw from tests/oracle.c, which shares
 * no code with the product. */
#ifndef GC_CORE_RANDOM_H
#define GC_CORE_RANDOM_H

#include <stdint.h>

/* Returns the next number of a uniform sequence in [-0.5, 0.5). *state must not be 0. xorshift64* (Vigna, An
 * experimental exploration of Marsaglia's xorshift generators, scrambled, 2016). */
static inline double gc_random_uniform(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)(*state * UINT64_C(2685821657736338717) >> 11) * 0x1p-53 - 0.5;
}

/* Returns gc_random_uniform rounded to float. */
static inline float gc_random_float(uint64_t *state) {
    return (float)gc_random_uniform(state);
}

#endif
