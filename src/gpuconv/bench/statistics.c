/* Order statistics and pseudo-random noise. */
#include "statistics.h"

#include "libgpuconv/core/random.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void gc_sort(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
}

double gc_median(double *values, int64_t n, double *spread) {
    gc_sort(values, n);
    if (spread)
        *spread = (values[n - 1] - values[0]) / 2;
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

float gc_noise(uint64_t *state) {
    return (float)gc_noise_next(state);
}
