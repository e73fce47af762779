/* Mid-band frequencies and edges: IEC 61260-1:2014, 5.2 to 5.5, with the octave ratio G = 10^0.3. The filter is a
 * Butterworth lowpass, transformed to the band: of the third order, which meets the limits of class 1 (table 1), or of
 * the seventh for speech, which attenuates the centre of the octave below by 45 dB. */
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
                            centre * half, 3};
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

gc_octave_band gc_octave_of_speech(int k) {
    gc_octave_band band = gc_octave_at(125 * exp2(k));
    band.order = 7;
    return band;
}

/* Returns the quality of the lowpass-to-bandpass transformation: centre over bandwidth. */
static double quality(const gc_octave_band *b) {
    return b->centre / (b->high - b->low);
}

/* The coefficients a of a lowpass's factors p^2 + a p + 1, (order - 1) / 2 of them; its last factor is p + 1. */
typedef struct factors {
    int count;
    double a[3]; /* 2 cos(pi k / order) */
} factors;

static factors factors_of(const gc_octave_band *b) {
    static const factors third = {1, {1}}, seventh = {3, {1.8019377358048383, 1.2469796037174670, 0.44504186791262881}};
    return b->order == 7 ? seventh : third;
}

double complex gc_octave_response(const gc_octave_band *b, double hz) {
    double complex p = GC_J * quality(b) * (hz / b->centre - b->centre / hz), product = p + 1;
    const factors lowpass = factors_of(b);
    for (int k = 0; k < lowpass.count; k++)
        product *= p * p + lowpass.a[k] * p + 1;
    return 1 / product;
}

/* Fills in the poles of the bandpass for a pole p of the lowpass, which solve s^2 - (w / Q) p s + w^2 = 0. */
static void add_poles(double complex p, double w, double width, gc_octave_correlation *c) {
    double complex half = width * p / 2, root = csqrt(half * half - w * w);
    c->pole[c->poles++] = half + root;
    c->pole[c->poles++] = half - root;
}

/* H(s) is (w s / Q)^order over the product of s - s_k. H(s) H(-s), the transform of the two-sided autocorrelation, is a
 * sum of partial fractions; those of the poles in the left half plane belong to positive lags. */
gc_octave_correlation gc_octave_correlate(const gc_octave_band *b) {
    gc_octave_correlation c = {.poles = 0};
    const double w = 2 * pi * b->centre, width = w / quality(b);
    const factors lowpass = factors_of(b);
    add_poles(-1, w, width, &c);
    for (int k = 0; k < lowpass.count; k++) {
        const double a = lowpass.a[k];
        double complex p = -a / 2 + GC_J * sqrt(1 - a * a / 4);
        add_poles(p, w, width, &c);
        add_poles(conj(p), w, width, &c);
    }
    for (int k = 0; k < c.poles; k++) {
        double complex s = c.pole[k], top = cpow(width * s, b->order), mirrored = cpow(-width * s, b->order);
        for (int j = 0; j < c.poles; j++) {
            top /= j == k ? 1 : s - c.pole[j];
            mirrored /= -s - c.pole[j];
        }
        c.residue[k] = top * mirrored;
    }
    return c;
}

double complex gc_octave_one_sided(const gc_octave_correlation *c, double hz) {
    double complex sum = 0, s = GC_J * 2 * pi * hz;
    for (int k = 0; k < c->poles; k++)
        sum += c->residue[k] / (s - c->pole[k]);
    return sum;
}
