/* Order statistics of timed runs. The benchmarks of command and lab and the CUDA backend use them. */
#ifndef GC_CORE_STATISTICS_H
#define GC_CORE_STATISTICS_H

#include <stdint.h>

/* Sorts the values in ascending order. */
void gc_sort(double *values, int64_t n);

/* Sorts the values in ascending order and returns their median; n >= 1.
 * @param spread  gets half the difference of the largest and the smallest value; NULL: not needed */
double gc_median(double *values, int64_t n, double *spread);

#endif
