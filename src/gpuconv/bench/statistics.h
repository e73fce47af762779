/* Small statistics of timed runs, and the noise that benchmarks convolve. */
#ifndef GPUCONV_BENCH_STATISTICS_H
#define GPUCONV_BENCH_STATISTICS_H

#include <stdint.h>

/* Sorts the values, ascending. */
void gc_sort(double *values, int64_t n);

/* Sorts; the median, and half of what lies between the ends (NULL: not wanted). */
double gc_median(double *values, int64_t n, double *spread);

/* The next of a sequence within -0.5 and 0.5, the same everywhere; *state is not 0. */
float gc_noise(uint64_t *state);

#endif
