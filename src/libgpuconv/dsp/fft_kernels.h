/* The vector loops of fft_kernels.c, which fft.c calls, and their tables of twiddle factors. */
#ifndef GC_DSP_FFT_KERNELS_H
#define GC_DSP_FFT_KERNELS_H

#include <stdint.h>

/*
 * The FFT as a tree of polynomial factors. x^M - e^(i a) = (x^(M/2) - w)(x^(M/2) + w) with w = e^(i a / 2): the
 * remainders of a polynomial A + x^(M/2) B are A + w B and A - w B. Node j of depth d has the children 2j and 2j + 1 at
 * depth d + 1; the angle of the root is pi / 2 (see fft.h). The twiddle factors of two siblings differ only by a factor
 * of i, so that one table entry serves both.
 *
 * An entry is the cosine and the tangent of the angle of w: w B = cos (B_re - tan B_im, B_im + tan B_re), and the
 * cosine is multiplied in the butterfly's additions, which makes six fused multiply-adds per butterfly (Linzer & Feig,
 * Implementation of efficient FFT algorithms on fused multiply-add architectures, IEEE Trans. Signal Processing 41(1),
 * 1993).
 */
enum {
    GC_FFT_RADIX_LEVELS = 3, /* levels of the tree that one pass over memory computes */
    GC_FFT_MAX_PASSES = 12
};

typedef struct gc_fft_tables {
    int64_t half;    /* M: points / 2 */
    int64_t vectors; /* M / lanes */
    int rows;        /* blocks that one tile holds: 1, or more if a block is shorter than a tile */
    int passes;
    int levels[GC_FFT_MAX_PASSES];

    /* Twiddle factors of each pass: 2^levels floats per node. Entry 0 is for the node itself, entry 2^(l-1) + j / 2 for
     * the pair j, j + 1 of its descendants l levels below. twiddles[passes]: the tiles' levels before the
     * transposition. */
    float *twiddles[GC_FFT_MAX_PASSES];

    /* Twiddle factors of the tiles after the transposition: per tile of lanes x lanes points, lanes / 2 entries of a
     * vector of cosines and a vector of tangents. */
    float *tile_twiddles;
} gc_fft_tables;

/* The functions of one instruction set, as documented in fft.h. */
typedef struct gc_fft_kernels {
    int lanes;
    int64_t (*spectrum_floats)(int64_t vectors); /* floats of a spectrum, including its gaps */
    void (*forward)(const gc_fft_tables *tables, const float *signal, float *spectrum);
    void (*inverse)(const gc_fft_tables *tables, const float *const *x, const float *const *h, int64_t count,
                    float *work, float *signal, int64_t first);
    void (*multiply_sum)(float *y, const float *const *x, const float *const *h, int64_t count, int64_t n);
    void (*forward_rows)(const gc_fft_tables *tables, const float *const *signal, int64_t frames, float scale,
                         float *spectrum);
    void (*inverse_rows)(const gc_fft_tables *tables, const float *x, const float *h, float *work, float *const *signal,
                         int64_t first, int64_t end);
} gc_fft_kernels;

#endif
