/* Complex FFT in double precision, for analysis and synthesis. The convolution of audio uses fft.h. */
#ifndef GC_DSP_FOURIER_H
#define GC_DSP_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

/* Transforms in place, unscaled. `points` is a power of two; direction -1: forward, +1: inverse.
 * @return false without memory, or if the thread's flag (core/cancel.h) is raised */
bool gc_fourier(double *re, double *im, int64_t points, int direction);

/* Convolves a (n frames) with b (m frames) into `out` (n + m - 1 frames). @return false as gc_fourier */
bool gc_fourier_convolve(const double *a, int64_t n, const double *b, int64_t m, double *out);

/* Completes the logarithm of a magnitude to that of a minimum-phase spectrum, by the folded cepstrum.
 * @param re the logarithm at all points; stays
 * @param im gets the phase in radians
 * @return false as gc_fourier */
bool gc_fourier_minimum_phase(double *re, double *im, int64_t points);

#endif
