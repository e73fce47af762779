/* Corrects the spectrum around the direct sound by trial. */
#include "sweep_timing.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

/* Gains of the direct sound from which a correction of drift and of lost frames is believed. */
static const double drift_gain = 1.1, loss_gain = 1.2;

/* The direct sound, its spectrum and room for a corrected one. */
typedef struct excerpt {
    int64_t points;
    double rate;
    double *re, *im, *yr, *yi;
} excerpt;

/* Cuts out 80 ms before and after the peak, and transforms them. */
static bool open_excerpt(excerpt *e, const double *response, int64_t points, double rate) {
    int64_t peak = 0;
    for (int64_t i = 1; i < points; i++)
        peak = fabs(response[i]) > fabs(response[peak]) ? i : peak;
    e->rate = rate;
    e->points = gc_min(points, gc_power_of_two((int64_t)(0.16 * rate)));
    e->re = gc_calloc(e->points, 4 * (int64_t)sizeof *e->re);
    if (!e->re)
        return false;
    e->im = e->re + e->points;
    e->yr = e->im + e->points;
    e->yi = e->yr + e->points;
    for (int64_t i = 0; i < e->points; i++) {
        const double weight = 0.5 - 0.5 * cos(2 * pi * (double)i / (double)e->points);
        e->re[i] = weight * response[(peak - e->points / 2 + i + points) % points];
    }
    return gc_fourier(e->re, e->im, e->points, -1);
}

/* Returns the largest magnitude of the positive frequencies' signal in yr, yi, which it transforms; *at gets its frame.
 * Negative: the transform failed. */
static double highest(excerpt *e, int64_t *at) {
    double most = 0;
    if (gc_cancelled() || !gc_fourier(e->yr, e->yi, e->points, 1))
        return -1;
    for (int64_t i = 0; i < e->points; i++) {
        const double power = e->yr[i] * e->yr[i] + e->yi[i] * e->yi[i];
        if (power > most) {
            most = power;
            *at = i;
        }
    }
    return sqrt(most);
}

/* Returns the peak with a drift of clocks removed. The drift e delays the frequency f of a sweep that grows e-fold in L
 * seconds by e L (1 + ln(f / from)); the phase is the integral of that. */
static double correct_drift(excerpt *e, const gc_sweep_growth *g, double drift) {
    int64_t unused;
    for (int64_t k = 0; k < e->points; k++) {
        const double hz = (double)k * e->rate / (double)e->points;
        const bool there = k < e->points / 2 && hz >= g->from && hz <= g->to;
        const double phase = there ? 2 * pi * drift * g->seconds * hz * log(hz / g->from) : 0;
        e->yr[k] = there ? e->re[k] * cos(phase) - e->im[k] * sin(phase) : 0;
        e->yi[k] = there ? e->re[k] * sin(phase) + e->im[k] * cos(phase) : 0;
    }
    return highest(e, &unused);
}

/* Returns the peak of the frequencies from bin `from` to below bin `to`, weighted so that high ones do not decide
 * alone. */
static double peak_between(excerpt *e, int64_t from, int64_t to, int64_t *at) {
    for (int64_t k = 0; k < e->points; k++) {
        const bool there = k >= from && k < to;
        const double weight = there ? 1 / sqrt((double)k) : 0;
        e->yr[k] = weight * e->re[k];
        e->yi[k] = weight * e->im[k];
    }
    return highest(e, at);
}

/* Returns whether the octaves below and above a split arrive with the parts: dispersion, as in a plate, delays them
 * otherwise. */
static bool is_step(excerpt *e, int64_t split, int64_t first, int64_t last, const int64_t *part) {
    int64_t below = 0, above = 0;
    const double most = fabs((double)(part[0] - part[1])) / 4;
    return peak_between(e, gc_max(first, split / 2), split, &below) >= 0 &&
           peak_between(e, split, gc_min(last, 2 * split), &above) >= 0 && fabs((double)(below - part[0])) <= most &&
           fabs((double)(above - part[1])) <= most;
}

/* Searches the frequency above which the response must be moved. @return the gain of the peak; negative: it failed */
static double search_loss(excerpt *e, const gc_sweep_growth *g, gc_sweep_timing *found) {
    const double bin = e->rate / (double)e->points, top = fmin(g->to, e->rate / 2);
    const double lowest = fmax(200, g->from);
    const int64_t first = gc_max(1, (int64_t)(lowest / bin)), last = (int64_t)(top / bin);
    int64_t unused;
    const double plain = peak_between(e, first, last, &unused);
    double best = 0;
    for (int step = 0; 2 * lowest * exp2(step / 12.0) < 0.95 * top; step++) {
        const double hz = 2 * lowest * exp2(step / 12.0);
        int64_t at[2] = {0, 0};
        const int64_t split = (int64_t)(hz / bin);
        const double low = peak_between(e, first, split, &at[0]), high = peak_between(e, split, last, &at[1]);
        if (low < 0 || high < 0)
            return -1;
        if (low + high > best && is_step(e, split, first, last, at)) {
            best = low + high;
            *found = (gc_sweep_timing){.lost = at[0] - at[1], .place = g->seconds * log(hz / g->from)};
        }
    }
    return plain > 0 ? best / plain : plain;
}

bool gc_sweep_time(const double *response, int64_t points, double rate, const gc_sweep_growth *g,
                   gc_sweep_timing *timing) {
    excerpt e = {0};
    gc_sweep_timing loss = {0};
    *timing = (gc_sweep_timing){0};
    const double whole = g->seconds * log(g->to / g->from) * rate; /* frames of the sweep */
    bool good = open_excerpt(&e, response, points, rate);
    const double plain = good ? correct_drift(&e, g, 0) : -1;
    double best = plain, moved = 0;
    good = plain >= 0;
    for (double shift = -ceil(0.005 * rate); good && shift <= 0.005 * rate; shift += 2) {
        const double peak = correct_drift(&e, g, shift / whole);
        good = peak >= 0;
        if (peak > best) {
            best = peak;
            moved = shift;
        }
    }
    const double split = good ? search_loss(&e, g, &loss) : -1;
    good = split >= 0;
    if (good && split > fmax(best / plain, loss_gain) && fabs((double)loss.lost) >= 0.0005 * rate)
        *timing = loss;
    else if (good && best > drift_gain * plain)
        timing->drift = 1e6 * moved / whole;
    free(e.re);
    return good;
}
