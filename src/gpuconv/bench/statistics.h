/* Order statistics of timed runs, and the noise of the benchmarks' signals. */
#ifndef GPUCONV_BENCH_STATISTICS_H
#define GPUCONV_BENCH_STATISTICS_H

#include <stdint.h>

/* Sorts the values in ascending order. */
void gc_sort(double *values, int64_t n);

/* Sorts the values and returns their median. @param spread receives half of the range; may be NULL */
double gc_median(double *values, int64_t n, double *spread);

/* Returns the next value of a reproducible sequence in [-0.5, 0.5]. *state must not be 0. */
float gc_noise(uint64_t *state);

#endif
