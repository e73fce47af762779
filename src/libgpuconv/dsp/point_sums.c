/* Check of a whole convolution by sums at a few points. */
#include "point_sums.h"

#include <math.h>

enum { BLOCK = 1024, LANES = 8 };

/* The angles of the points in 2^-32 revolutions: odd, so that the phase of each sample is exact in 32 bits. */
static const uint32_t steps[GC_POINTS] = {0x1b3f5d87u, 0x5a827999u, 0x9d2c5681u, 0xe7c4a1f3u};

/* z^n at one point, exact to the rounding of a double. */
static void power(int point, int64_t n, double *re, double *im) {
    const uint32_t phase = steps[point] * (uint32_t)n;
    const double angle = (double)phase * (2 * M_PI / 4294967296.0);
    *re = cos(angle);
    *im = sin(angle);
}

typedef struct table {
    double re[BLOCK], im[BLOCK];
} table;

/* Adds the sum over n < count of x[n] t[n] to *re and *im. */
static void add_block(const float *x, int count, const table *t, double *re, double *im) {
    double r[LANES] = {0}, i[LANES] = {0};
    int n = 0;
    for (; n + LANES <= count; n += LANES)
        for (int k = 0; k < LANES; k++) {
            r[k] += (double)x[n + k] * t->re[n + k];
            i[k] += (double)x[n + k] * t->im[n + k];
        }
    for (; n < count; n++) {
        r[0] += (double)x[n] * t->re[n];
        i[0] += (double)x[n] * t->im[n];
    }
    for (int k = 0; k < LANES; k++) {
        *re += r[k];
        *im += i[k];
    }
}

gc_point_sums gc_point_sums_of(const float *x, int64_t frames) {
    gc_point_sums s = {0};
    for (int p = 0; p < GC_POINTS; p++) {
        table t;
        for (int n = 0; n < BLOCK; n++)
            power(p, n, &t.re[n], &t.im[n]);
        for (int64_t at = 0; at < frames; at += BLOCK) {
            double re = 0, im = 0, c, d;
            add_block(x + at, (int)(frames - at < BLOCK ? frames - at : BLOCK), &t, &re, &im);
            power(p, at, &c, &d);
            s.re[p] += re * c - im * d;
            s.im[p] += re * d + im * c;
        }
    }
    return s;
}

gc_point_sums gc_point_sums_of_convolution(const float *x, int64_t frames, const float *h, int64_t taps,
                                           int64_t outputs) {
    /* The inputs before `whole` meet all taps within the outputs, input i after them the first outputs - i taps. */
    const int64_t whole = outputs >= frames + taps - 1 ? frames : outputs >= taps ? outputs - taps + 1 : 0;
    const gc_point_sums all = gc_point_sums_of(h, taps), early = gc_point_sums_of(x, whole);
    gc_point_sums s;
    for (int p = 0; p < GC_POINTS; p++) {
        s.re[p] = early.re[p] * all.re[p] - early.im[p] * all.im[p];
        s.im[p] = early.re[p] * all.im[p] + early.im[p] * all.re[p];
        double re = 0, im = 0, c, d; /* of the first taps */
        int64_t k = 0;
        for (int64_t i = (frames < outputs ? frames : outputs) - 1; i >= whole; i--) {
            for (; k < taps && k < outputs - i; k++) {
                power(p, k, &c, &d);
                re += (double)h[k] * c;
                im += (double)h[k] * d;
            }
            power(p, i, &c, &d);
            s.re[p] += (double)x[i] * (re * c - im * d);
            s.im[p] += (double)x[i] * (re * d + im * c);
        }
    }
    return s;
}

double gc_point_sums_distance(const gc_point_sums *a, const gc_point_sums *b) {
    double sum = 0;
    for (int p = 0; p < GC_POINTS; p++)
        sum += (a->re[p] - b->re[p]) * (a->re[p] - b->re[p]) + (a->im[p] - b->im[p]) * (a->im[p] - b->im[p]);
    return sum / GC_POINTS;
}
