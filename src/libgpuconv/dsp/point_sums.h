/*
 * Check of a whole convolution without computing it again: a convolution is a product of polynomials, Y(z) = X(z) H(z),
 * so that sums over all samples at a few points z must agree.
 *
 *      X(z) = sum over n of x[n] z^n,     |z| = 1
 *
 * Every sample takes part with weight one. The squared difference of both sides at a random point is, on average, the
 * energy of the error, whether the error is noise in all samples or a single wrong sample.
 */
#ifndef GC_DSP_POINT_SUMS_H
#define GC_DSP_POINT_SUMS_H

#include <stdint.h>

enum { GC_POINTS = 4 };

/* X(z) at each point. */
typedef struct gc_point_sums {
    double re[GC_POINTS], im[GC_POINTS];
} gc_point_sums;

/* Returns the sums of `frames` samples. */
gc_point_sums gc_point_sums_of(const float *x, int64_t frames);

/* Returns the sums of the first `outputs` samples of the convolution of x and h. */
gc_point_sums gc_point_sums_of_convolution(const float *x, int64_t frames, const float *h, int64_t taps,
                                           int64_t outputs);

/* Returns the mean squared difference over the points: an estimate of the energy of the error, within 6 dB. NaN if a
 * sample was NaN. */
double gc_point_sums_distance(const gc_point_sums *a, const gc_point_sums *b);

#endif
