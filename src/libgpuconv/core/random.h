/* Pseudo-random numbers with the same sequence on every machine, and the mixer of splitmix64.
 *
 * There are three generators, because a change of generator would change the bytes of outputs: xorshift64* makes test
 * signals and benchmarks; splitmix64 makes dither, the random choices of a batch and the lab's inputs; xoshiro256** in
 * libtools/room/synth.c makes synthesised material. Tests draw from tests/oracle.c, which shares no code with the
 * product. */
#ifndef GC_CORE_RANDOM_H
#define GC_CORE_RANDOM_H

#include <stdint.h>

/* Returns the upper 53 of 64 random bits as a number in [0, 1). */
static inline double gc_unit_of_bits(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}

/* Returns the next number of a uniform sequence in [-0.5, 0.5). *state must not be 0. xorshift64* (Vigna, An
 * experimental exploration of Marsaglia's xorshift generators, scrambled, 2016). */
static inline double gc_random_uniform(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return gc_unit_of_bits(*state * UINT64_C(2685821657736338717)) - 0.5;
}

/* Returns gc_random_uniform rounded to float. */
static inline float gc_random_float(uint64_t *state) {
    return (float)gc_random_uniform(state);
}

/* The increment of splitmix64's state: 2^64 divided by the golden ratio, made odd. */
#define GC_SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns 64 bits, each of which depends on all bits of `z`: the finaliser of splitmix64 (Steele, Lea & Flood, Fast
 * splittable pseudorandom number generators, OOPSLA 2014). Different arguments give different results. */
static inline uint64_t gc_mix_bits(uint64_t z) {
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns the next number of splitmix64. Any *state is valid; (n + 1) GC_SPLITMIX_STEP mixed gives number n of the
 * sequence that begins with state 0. */
static inline uint64_t gc_random_bits(uint64_t *state) {
    return gc_mix_bits(*state += GC_SPLITMIX_STEP);
}

#endif
