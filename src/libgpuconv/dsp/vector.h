/* A vector of floats that fills one register of the current instruction set, as a GCC vector type, so that all sets
 * share one source. Only files that are compiled once for each set include this header. */
#ifndef GC_DSP_VECTOR_H
#define GC_DSP_VECTOR_H

#ifdef __x86_64__
#include <immintrin.h>
#endif

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

/* Loops over arrays of registers must be unrolled completely, which requires constant bounds: functions with such loops
 * are always inlined. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE vec load(const float *p) {
    return *(const vec_unaligned *)p;
}

ALWAYS_INLINE void store(float *p, vec v) {
    *(vec_unaligned *)p = v;
}

/* Stores to an address aligned to the vector without reading its cache line first: for large results that are read much
 * later. Call fence_stores() before another thread reads them. GC_ALIGNED_TO_16 (CMakeLists.txt): allocated memory has
 * no greater alignment. */
ALWAYS_INLINE void store_past_caches(float *p, vec v) {
#if defined(GC_ALIGNED_TO_16)
    store(p, v); /* such stores exist only for aligned addresses */
#elif defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__x86_64__)
    _mm_stream_ps(p, (__m128)v);
#else
    store(p, v);
#endif
}

ALWAYS_INLINE void fence_stores(void) {
#ifdef __x86_64__
    _mm_sfence();
#endif
}

ALWAYS_INLINE vec broadcast(float x) {
    return x - (vec){0};
}

/* One step of a transposition: in each block of 2w x 2w, exchanges the upper right w x w elements with the lower left
 * ones. Rows a and b are w rows apart. */
ALWAYS_INLINE void exchange(vec *a, vec *b, int w) {
    vec x = *a, y = *b;
#if defined(__AVX512F__)
    if (w == 8) {
        *a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        *b = __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    } else if (w == 4) {
        *a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
        *b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    } else if (w == 2) {
        *a = __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        *b = __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    } else {
        *a = __builtin_shufflevector(x, y, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
        *b = __builtin_shufflevector(x, y, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    }
#elif defined(__AVX2__)
    if (w == 4) {
        *a = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
        *b = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
    } else if (w == 2) {
        *a = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
        *b = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    } else {
        *a = __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
        *b = __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
    }
#else
    if (w == 2) {
        *a = __builtin_shufflevector(x, y, 0, 1, 4, 5);
        *b = __builtin_shufflevector(x, y, 2, 3, 6, 7);
    } else {
        *a = __builtin_shufflevector(x, y, 0, 4, 2, 6);
        *b = __builtin_shufflevector(x, y, 1, 5, 3, 7);
    }
#endif
}

/* Transposes LANES rows of LANES elements in place. */
ALWAYS_INLINE void transpose(vec *rows) {
#pragma GCC unroll 4
    for (int w = LANES / 2; w >= 1; w /= 2)
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & w))
                exchange(&rows[i], &rows[i + w], w);
}

#endif
