/* Edits responses by their definitions in double precision. The code is simple rather than fast. */
#include "planes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Returns n zeros. Exits the process if memory is exhausted. */
static double *allocate(int n) {
    double *x = calloc((size_t)n, sizeof *x);
    if (!x) {
        fprintf(stderr, "oracle: no memory for %d values\n", n);
        exit(1);
    }
    return x;
}

planes planes_new(int count, int pre, int frames, double rate) {
    planes made = {count, pre, frames, 0, rate, {NULL}};
    for (int p = 0; p < count; p++)
        made.x[p] = allocate(pre + frames);
    return made;
}

void planes_free(planes *old) {
    for (int p = 0; p < old->count; p++)
        free(old->x[p]);
}

void planes_replace(planes *old, planes made) {
    planes_free(old);
    *old = made;
}

double planes_at(const planes *from, int p, int time) {
    return time >= -from->pre && time < from->frames ? from->x[p][from->pre + time] : 0;
}

planes planes_part(const planes *from, int pre, int start, int frames) {
    planes made = planes_new(from->count, pre, frames, from->rate);
    made.ring = (int)fmax(0, fmin(start + frames, from->frames) - (from->frames - from->ring));
    for (int p = 0; p < from->count; p++)
        for (int n = -pre; n < frames; n++)
            made.x[p][pre + n] = planes_at(from, p, start + n);
    return made;
}

/* Returns the share of the energy from a time on and before another one, the largest of all planes. */
static double share_between(const planes *of, int first, int last) {
    double most = 0;
    for (int p = 0; p < of->count; p++) {
        double part = 0, all = 0;
        for (int n = -of->pre; n < of->frames; n++) {
            const double x = planes_at(of, p, n);
            all += x * x;
            part += n >= first && n < last ? x * x : 0;
        }
        most = fmax(most, part / all);
    }
    return most;
}

/* The window is wider for a lower rate, whose Nyquist frequency is the limit of the sinc. */
planes planes_resample(const planes *from, double ratio, double rate) {
    const double cutoff = fmin(1, ratio), half = 200 / cutoff;
    const int own = (int)ceil(from->frames * ratio);
    planes made = planes_new(from->count, PLANES_PRE, own + PLANES_PRE, rate);
    for (int p = 0; p < from->count; p++)
        for (int k = -from->pre; k < from->frames; k++) {
            const double tap = planes_at(from, p, k) * cutoff / ratio;
            const int first = (int)fmax(-PLANES_PRE, ceil((k - half) * ratio));
            const int last = (int)fmin(made.frames - 1, (k + half) * ratio);
            for (int n = first; n <= last && tap != 0; n++) {
                const double off = cutoff * (n / ratio - k), sinc = fabs(off) < 1e-9 ? 1 : sin(pi * off) / (pi * off);
                made.x[p][PLANES_PRE + n] += tap * sinc * exp(-off * off / 2500);
            }
        }
    made.ring = PLANES_PRE;
    if (share_between(&made, own, made.frames) < 1e-12)
        planes_replace(&made, planes_part(&made, made.pre, 0, own));
    if (share_between(&made, -made.pre, 0) < 1e-6)
        planes_replace(&made, planes_part(&made, 0, 0, made.frames));
    made.ring += (int)ceil(from->ring * ratio);
    return made;
}

double planes_peak(const planes *of) {
    double most = 0;
    for (int p = 0; p < of->count; p++)
        for (int i = 0; i < of->pre + of->frames; i++)
            most = fmax(most, fabs(of->x[p][i]));
    return most;
}

int planes_first(const planes *of, double level) {
    for (int n = -of->pre; n < of->frames; n++)
        for (int p = 0; p < of->count; p++)
            if (fabs(planes_at(of, p, n)) >= level)
                return n;
    return 0;
}

int planes_last(const planes *of, double level) {
    for (int n = of->frames - 1; n > 0; n--)
        for (int p = 0; p < of->count; p++)
            if (fabs(planes_at(of, p, n)) >= level)
                return n;
    return 0;
}

/* A Fourier transform of 2^k points by its recursive definition; sign 1 does not divide. */
static void transform(double *re, double *im, int points, int sign) {
    if (points == 1)
        return;
    const int half = points / 2;
    double *memory = allocate(4 * half), *er = memory, *ei = er + half, * or = ei + half, *oi = or +half;
    for (int i = 0; i < half; i++) {
        er[i] = re[2 * i];
        ei[i] = im[2 * i];
        or [i] = re[2 * i + 1];
        oi[i] = im[2 * i + 1];
    }
    transform(er, ei, half, sign);
    transform(or, oi, half, sign);
    for (int k = 0; k < half; k++) {
        const double c = cos(2 * pi * k / points), s = sign * sin(2 * pi * k / points);
        const double tr = c * or [k] - s * oi[k], ti = c * oi[k] + s * or [k];
        re[k] = er[k] + tr;
        im[k] = ei[k] + ti;
        re[k + half] = er[k] - tr;
        im[k + half] = ei[k] - ti;
    }
    free(memory);
}

planes planes_minimum_phase(const planes *from) {
    planes made = planes_new(from->count, 0, from->frames, from->rate);
    int points = 4096;
    while (points < 8 * from->frames)
        points *= 2;
    double *re = allocate(2 * points), *im = re + points;
    for (int p = 0; p < from->count; p++) {
        for (int i = 0; i < points; i++) {
            re[i] = planes_at(from, p, i);
            im[i] = 0;
        }
        transform(re, im, points, -1);
        for (int i = 0; i < points; i++) {
            re[i] = log(hypot(re[i], im[i]));
            im[i] = 0;
        }
        transform(re, im, points, 1);
        for (int i = 0; i < points; i++) {
            re[i] *= (i == 0 || i == points / 2 ? 1.0 : i < points / 2 ? 2.0 : 0.0) / points;
            im[i] = 0;
        }
        transform(re, im, points, -1);
        for (int i = 0; i < points; i++) {
            const double magnitude = exp(re[i]) / points, phase = im[i];
            re[i] = magnitude * cos(phase);
            im[i] = magnitude * sin(phase);
        }
        transform(re, im, points, 1);
        memcpy(made.x[p], re, (size_t)from->frames * sizeof *re);
    }
    free(re);
    return made;
}

planes planes_series(const planes *from, const planes *other) {
    planes made = planes_new(from->count, from->pre + other->pre, from->frames + other->frames - 1, from->rate);
    made.ring = from->ring + other->ring;
    for (int p = 0; p < from->count; p++) {
        const double *y = other->x[other->count == 1 ? 0 : p];
        for (int i = 0; i < from->pre + from->frames; i++)
            for (int k = 0; k < other->pre + other->frames && from->x[p][i] != 0; k++)
                made.x[p][i + k] += from->x[p][i] * y[k];
    }
    return made;
}

void planes_smooth(double *x, int n) {
    enum { HALF = 40 };
    double pulse[2 * HALF + 1], *sum = allocate(n + 2 * HALF);
    for (int k = -HALF; k <= HALF; k++)
        pulse[HALF + k] = exp(-k * k / 100.0) * cos(0.4 * k);
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= 2 * HALF && x[i] != 0; k++)
            sum[i + k] += pulse[k] * x[i];
    memcpy(x, sum + HALF, (size_t)n * sizeof *x);
    free(sum);
}
