/*
 * Transforms of real blocks, for convolution only.
 *
 * A block of `points` samples is taken as a polynomial modulo x^points + 1, not x^points - 1: products of two such
 * transforms convolve with the wrapped part negated, and overlap-save throws that part away. The reward: the block's
 * two halves are the real and imaginary part of one complex transform of points / 2, with nothing to untangle
 * (Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982, ch. 8; the "right-angle" convolution of Krot &
 * Minervina).
 *
 * A spectrum is points / 2 complex numbers in an order of its own (it differs between instruction sets), good for sums
 * of products and the way back. gc_fft_floats() floats hold it, gaps included; they must be zero before first use.
 */
#ifndef GC_DSP_FFT_H
#define GC_DSP_FFT_H

#include "simd.h"

#include <stdint.h>

/* What every instruction set can do, in points. */
enum { GC_FFT_MIN_POINTS = 512, GC_FFT_MAX_LOG2 = 30, GC_FFT_SLAB = 32 };

typedef struct gc_fft gc_fft;

/* For blocks of `points`, a power of two from GC_FFT_MIN_POINTS up. One object serves many threads at once. NULL: no
 * memory, or no such size. */
gc_fft *gc_fft_new(const gc_simd *simd, int64_t points);
void gc_fft_free(gc_fft *fft);

/* Floats of a spectrum. */
int64_t gc_fft_floats(const gc_fft *fft);

/* spectrum = transform of signal[0 .. points). */
void gc_fft_forward(const gc_fft *fft, const float *signal, float *spectrum);

/* The block whose spectrum is the sum over i < count of x[i] h[i], times points / 2; of it signal gets samples first ..
 * points, `first` a multiple of 32. `work` is a spectrum's room, overwritten, and may be one of the x. count 0:
 * the spectrum is in work. */
void gc_fft_inverse(const gc_fft *fft, const float *const *x, const float *const *h, int64_t count, float *work,
                    float *signal, int64_t first);

/* y = the sum over i < count of x[i] h[i], over `n` floats of spectra from a multiple of GC_FFT_SLAB on, n one too or
 * up to the end. */
void gc_fft_multiply_sum(const gc_fft *fft, float *y, const float *const *x, const float *const *h, int64_t count,
                         int64_t n);

#endif
