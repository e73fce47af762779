/* Mid-band frequencies and edges: IEC 61260-1:2014, 5.2 to 5.5, with the octave ratio G = 10^0.3. The filter is a
 * Butterworth lowpass of the third order, transformed to the band, which meets the limits of class 1 (table 1). */
#include "octave_filter.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Returns the band whose mid-band frequency is 1000 Hz G^(x / b). */
static gc_octave_band band_of(int x, int per_octave) {
    static const double nominal[] = {1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8};
    int tenths = x * 3 / per_octave; /* in steps of 10^0.1 */
    int decade = (int)floor(tenths / 10.0), step = tenths - 10 * decade;
    double centre = 1000 * pow(10, tenths / 10.0), half = pow(10, 0.3 / (2 * per_octave));
    double name = nominal[step] * pow(10, 3 + decade);
    return (gc_octave_band){floor(name + 0.5) == 32 ? 31.5 : floor(name * 10 + 0.5) / 10, centre, centre / half,
                            centre * half};
}

int gc_octave_bands(int per_octave, double rate, gc_octave_band band[GC_OCTAVE_BANDS]) {
    int first = per_octave == 1 ? -4 : -13, last = per_octave == 1 ? 4 : 13, count = 0;
    for (int x = first; x <= last; x++) {
        gc_octave_band b = band_of(x, per_octave);
        if (b.high < rate / 2)
            band[count++] = b;
    }
    return count;
}

gc_octave_band gc_octave_at(double nominal) {
    return band_of((int)lrint(log10(nominal / 1000) / 0.3), 1);
}

/* Returns the quality of the lowpass-to-bandpass transformation: centre over bandwidth. */
static double quality(const gc_octave_band *b) {
    return b->centre / (b->high - b->low);
}

double complex gc_octave_response(const gc_octave_band *b, double hz) {
    double complex p = GC_J * quality(b) * (hz / b->centre - b->centre / hz);
    return 1 / ((p + 1) * (p * p + p + 1));
}

/* The poles s of the bandpass for a pole p of the lowpass solve s^2 - (w / Q) p s + w^2 = 0. H(s) is (w s / Q)^3 over
 * the product of s - s_k. H(s) H(-s), the transform of the two-sided autocorrelation, is a sum of partial fractions;
 * those of the poles in the left half plane belong to positive lags. */
gc_octave_correlation gc_octave_correlate(const gc_octave_band *b) {
    gc_octave_correlation c;
    const double w = 2 * pi * b->centre, width = w / quality(b);
    const double complex lowpass[3] = {-1, cexp(GC_J * 2 * pi / 3), cexp(-GC_J * 2 * pi / 3)};
    for (int k = 0; k < 3; k++) {
        double complex half = width * lowpass[k] / 2, root = csqrt(half * half - w * w);
        c.pole[2 * k] = half + root;
        c.pole[2 * k + 1] = half - root;
    }
    for (int k = 0; k < 6; k++) {
        double complex s = c.pole[k], top = cpow(width * s, 3), mirrored = cpow(-width * s, 3);
        for (int j = 0; j < 6; j++) {
            top /= j == k ? 1 : s - c.pole[j];
            mirrored /= -s - c.pole[j];
        }
        c.residue[k] = top * mirrored;
    }
    return c;
}

double complex gc_octave_one_sided(const gc_octave_correlation *c, double hz) {
    double complex sum = 0, s = GC_J * 2 * pi * hz;
    for (int k = 0; k < 6; k++)
        sum += c->residue[k] / (s - c->pole[k]);
    return sum;
}
