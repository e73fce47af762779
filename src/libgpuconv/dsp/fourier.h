/* Fourier transforms in double precision, for what is analysed or made, not for what is streamed. */
#ifndef GC_DSP_FOURIER_H
#define GC_DSP_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

/* In place and unscaled; `points` a power of two, direction -1 forwards, +1 back. False: no memory, nothing changed. */
bool gc_fourier(double *re, double *im, int64_t points, int direction);

/* The convolution of a (n frames) and b (m frames) into `out` (n + m - 1 frames). False: no memory. */
bool gc_fourier_convolve(const double *a, int64_t n, const double *b, int64_t m, double *out);

#endif
