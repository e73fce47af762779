/* What the vector loops of fft_kernels.c offer to fft.c, and the tables that they look up. */
#ifndef GC_DSP_FFT_KERNELS_H
#define GC_DSP_FFT_KERNELS_H

#include <stdint.h>

/*
 * The tree. x^M - e^(i a) = (x^(M/2) - w)(x^(M/2) + w) with w = e^(i a / 2): the remainders of a polynomial A + x^(M/2)
 * B are A + w B and A - w B. Node j of depth d thus has children 2j and 2j + 1 at depth d + 1; the root's angle is pi /
 * 2 (see fft.h). Both children of a node turn by the same w but for a factor of i, so one entry serves the two.
 *
 * An entry is cos and tan of w's angle: w B = cos (B_re - tan B_im, B_im + tan B_re), and the cosine goes into the sum,
 * six fused operations a butterfly (Linzer & Feig, Implementation of efficient FFT algorithms on fused multiply-add
 * architectures, IEEE Trans. Signal Processing 41(1), 1993).
 */
enum {
    GC_FFT_RADIX_LEVELS = 3, /* levels of the tree in one pass over memory */
    GC_FFT_PASSES = 12
};

typedef struct gc_fft_tables {
    int64_t half;    /* M: points / 2 */
    int64_t vectors; /* M / lanes */
    int passes;
    int levels[GC_FFT_PASSES];

    /* A pass: 2^levels floats a node: entry 0 for the node itself, 2^(l-1) + j / 2 for the pair j, j + 1 of its
     * descendants l levels down. Behind the last pass: the tiles' levels before they are transposed. */
    float *twiddles[GC_FFT_PASSES];

    /* A tile of lanes x lanes points: lanes / 2 entries of a vector of cosines and a vector of tangents. */
    float *tile;
} gc_fft_tables;

/* One instruction set's loops; fft.h says what they do. */
typedef struct gc_fft_kernels {
    int lanes;
    int64_t (*floats)(int64_t vectors); /* of a spectrum, its gaps included */
    void (*forward)(const gc_fft_tables *tables, const float *signal, float *spectrum);
    void (*backward)(const gc_fft_tables *tables, const float *const *x, const float *const *h, int64_t count,
                     float *work, float *signal, int64_t first);
    void (*multiply_sum)(float *y, const float *const *x, const float *const *h, int64_t count, int64_t n);
} gc_fft_kernels;

#endif
