/* The inner loops that want vectors, built once for each instruction set and chosen when the program runs. */
#ifndef GC_DSP_SIMD_H
#define GC_DSP_SIMD_H

#include "pcm_kernels.h"

#include <stdint.h>

/* All sets' loops go by stretches that divide this, so that calls for outputs that begin at multiples of it give the
 * same bits as one call for all of them. */
enum { GC_DIRECT_SPAN = 3072 };

typedef struct gc_simd {
    const char *name; /* such as "AVX-512" */

    /* y[i] = sum over k < taps of h[k] x[i - k] for i < n, or with `add` that and what was there; reads x[-(taps - 1)]
     * on. y must not overlap the rest. */
    void (*direct)(const float *x, const float *h, int64_t taps, float *y, int64_t n, int add);

    /* Nothing but fused multiply-adds, in registers: operations done, two each, into *operations; the result only so
     * that they cannot be left out. For benchmarks. */
    float (*multiply_add_loop)(int64_t rounds, double *operations);

    const struct gc_fft_kernels *fft; /* what fft.h runs */

    /* what pcm.h runs */
    gc_pcm_unpacker *unpack;
    gc_pcm_packer *pack;
} gc_simd;

/* The widest set that this processor has. */
const gc_simd *gc_simd_best(void);

/* All that were built and run here, widest first; *count of them. For tests and benchmarks. */
const gc_simd *const *gc_simd_all(int *count);

#endif
