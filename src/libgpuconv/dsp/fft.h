/*
 * FFT of real blocks, for convolution only: a negacyclic ("right-angle") transform.
 *
 * A block of `points` samples is a polynomial modulo x^points + 1 instead of x^points - 1. The product of two such
 * transforms is a circular convolution whose wrapped part is negated; overlap-save discards that part. In return, the
 * two halves of the block are the real and imaginary parts of one complex transform of points / 2, without the usual
 * untangling of a real FFT (Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982, ch. 8; the
 * "right-angle" convolution of Krot & Minervina).
 *
 * A spectrum is points / 2 complex numbers in an internal order, which differs between instruction sets. It can be used
 * in sums of products and in the inverse transform only. It needs gc_fft_floats() floats, including gaps
 * (fft_kernels.c); all of them must be zero before the first use.
 */
#ifndef GC_DSP_FFT_H
#define GC_DSP_FFT_H

#include "simd.h"

#include <stdint.h>

/* Limits of `points` that hold for every instruction set (of rows: GC_FFT_MIN_ROW), and the granularity of
 * gc_fft_multiply_sum in floats. */
enum { GC_FFT_MIN_POINTS = 512, GC_FFT_MIN_ROW = 64, GC_FFT_MAX_ROWS = 8, GC_FFT_MAX_LOG2 = 30, GC_FFT_SLAB = 32 };

typedef struct gc_fft gc_fft;

/* Creates a plan for blocks of `points`, a power of two from GC_FFT_MIN_ROW to 2^GC_FFT_MAX_LOG2. It is immutable:
 * several threads may use it at the same time. Plans below GC_FFT_MIN_POINTS serve the functions of rows only. @return
 * NULL without memory or if the size is invalid */
gc_fft *gc_fft_new(const gc_simd *simd, int64_t points);
void gc_fft_free(gc_fft *fft);

/* Returns the number of floats of a spectrum. */
int64_t gc_fft_floats(const gc_fft *fft);

/* Transforms signal[0 .. points) into `spectrum`. */
void gc_fft_forward(const gc_fft *fft, const float *signal, float *spectrum);

/* Computes the inverse transform of the sum over i < count of x[i] h[i], scaled by points / 2, and writes its samples
 * first .. points - 1 to `signal`. `first` is a multiple of 32.
 * @param work  a spectrum, overwritten; may be one of the x. If count is 0, it is the spectrum to transform */
void gc_fft_inverse(const gc_fft *fft, const float *const *x, const float *const *h, int64_t count, float *work,
                    float *signal, int64_t first);

/* Computes y = sum over i < count of x[i] h[i] for `n` floats of the spectra. The pointers are at a multiple of
 * GC_FFT_SLAB floats from the beginning of their spectra; n is a multiple of it too, or reaches to the end. */
void gc_fft_multiply_sum(const gc_fft *fft, float *y, const float *const *x, const float *const *h, int64_t count,
                         int64_t n);

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Returns the blocks that the functions of rows transform at a time: 1 to GC_FFT_MAX_ROWS, 1 from GC_FFT_MIN_POINTS on.
 * Their spectra are one spectrum of gc_fft_floats() floats. The samples of a block do not depend on the others. */
int gc_fft_rows(const gc_fft *fft);

/* Transforms gc_fft_rows() blocks: the `frames` samples at each of `signal`, followed by zeros, all times `scale`. */
void gc_fft_forward_rows(const gc_fft *fft, const float *const *signal, int64_t frames, float scale, float *spectrum);

/* Computes the inverse transform of the product x h, scaled by points / 2, and writes the samples first .. end - 1 of
 * every block to each of `signal`. Blocks may be written to the same place if they are equal.
 * @param h     NULL: x is the product, and `work` is x
 * @param work  a spectrum, overwritten; may be x */
void gc_fft_inverse_rows(const gc_fft *fft, const float *x, const float *h, float *work, float *const *signal,
                         int64_t first, int64_t end);

#endif
