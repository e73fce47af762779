/* Logarithmic frequency bands of a power spectrum. */
#include "bands.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

int64_t gc_bands_points(int64_t frames, double rate) {
    /* The plots' bands are at least 5 % wide, which is 1 Hz at 20 Hz; more than 2^19 points show no more detail. */
    double points = fmin(fmax(rate, 16384), 0x1p19);
    return gc_power_of_two(gc_max(frames, (int64_t)points));
}

double gc_bands_lowest(double rate) {
    return fmin(20, rate / 20);
}

void gc_bands(const double *power, int64_t points, double rate, int bands, double *hz, double *level) {
    double lowest = gc_bands_lowest(rate), ratio = rate / 2 / lowest, bin = rate / (double)points;
    int64_t k = (int64_t)ceil(lowest / bin);
    for (int b = 0; b < bands; b++) {
        double from = lowest * pow(ratio, (double)b / bands), to = lowest * pow(ratio, (b + 1.0) / bands), sum = 0;
        int64_t count = 0;
        for (; k < points / 2 && (double)k * bin < to; k++, count++)
            sum += power[k];
        hz[b] = sqrt(from * to);
        level[b] = count && sum > 0 ? 10 * log10(sum / (double)count) : (double)NAN;
    }
}

void gc_bands_column(const double *power, int64_t points, double rate, int rows, float *level) {
    double lowest = gc_bands_lowest(rate), ratio = rate / 2 / lowest, bin = rate / (double)points;
    for (int r = 0; r < rows; r++) {
        double from = lowest * pow(ratio, (double)r / rows) / bin, to = lowest * pow(ratio, (r + 1.0) / rows) / bin;
        double middle = sqrt(from * to), most = 0;
        int64_t below = (int64_t)middle;
        if (below + 1 < points / 2)
            most = power[below] + (power[below + 1] - power[below]) * (middle - (double)below);
        for (int64_t k = (int64_t)ceil(from); k < points / 2 && (double)k < to; k++)
            most = fmax(most, power[k]);
        level[r] = (float)(10 * log10(fmax(most, 1e-30)));
    }
}

double gc_bands_mean(const double *sums, int64_t points, double rate, double hz, double width) {
    double bin = rate / (double)points, half = exp2(width / 2);
    int64_t from = (int64_t)ceil(hz / half / bin), to = (int64_t)floor(hz * half / bin) + 1;
    if (to <= from) {
        from = llrint(hz / bin);
        to = from + 1;
    }
    from = gc_max(1, gc_min(from, points / 2 - 1));
    to = gc_max(from + 1, gc_min(to, points / 2));
    return (sums[to] - sums[from]) / (double)(to - from);
}
