/* The vector that the instruction set at hand holds in one register, as GCC's own type, so that there is one text for
 * all sets. Only files that are compiled once for each set include this. */
#ifndef GC_DSP_VECTOR_H
#define GC_DSP_VECTOR_H

#include <stdint.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#define SET_NAME "AVX-512"
#elif defined(__AVX2__)
enum { LANES = 8 };
#define SET_NAME "AVX2"
#elif defined(__aarch64__)
enum { LANES = 4 };
#define SET_NAME "NEON"
#else
enum { LANES = 4 };
#define SET_NAME "SSE2"
#endif

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Loops over registers are written as loops and must not remain any: what holds them is expanded where it is used. */
#define EXPANDED static inline __attribute__((always_inline))

EXPANDED vec load(const float *p) {
    return *(const vec_unaligned *)p;
}

EXPANDED void store(float *p, vec v) {
    *(vec_unaligned *)p = v;
}

EXPANDED vec broadcast(float x) {
    return x - (vec){0};
}

#endif
