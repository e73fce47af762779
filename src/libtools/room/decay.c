/* Decay times are computed by backward integration (Schroeder, JASA 37 (1965), 409) from the crossing of decay and
 * noise floor. The crossing is found by alternating estimates of slope and floor (Lundeby, Vigran, Bietz & Vorlaender,
 * Acustica 81 (1995), 344). The noise is subtracted, and the energy that an undisturbed decay would have after the
 * crossing is added (ISO 3382-1:2009, 5.3.3). */
#include "decay.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

/* The sums of a straight line y = offset + slope * i by least squares. */
typedef struct line {
    double offset, slope;
    double square; /* of the correlation coefficient */
} line;

/* Fits a line to y[first] .. y[last - 1]. Positions are counted from `first`, which keeps the sums accurate. */
static line fit_line(const double *y, int64_t first, int64_t last) {
    double n = (double)(last - first), sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    for (int64_t i = first; i < last; i++) {
        double x = (double)(i - first), v = y[i] - y[first];
        sx += x;
        sy += v;
        sxx += x * x;
        sxy += x * v;
        syy += v * v;
    }
    double dx = n * sxx - sx * sx, dy = n * syy - sy * sy, dxy = n * sxy - sx * sy;
    double slope = dx > 0 ? dxy / dx : 0;
    double offset = n > 0 ? y[first] + (sy - slope * sx) / n - slope * (double)first : 0;
    return (line){offset, slope, dx > 0 && dy > 0 ? dxy * dxy / (dx * dy) : 0};
}

static double decibels(double power) {
    return 10 * log10(fmax(power, 1e-300));
}

/* Writes the mean energy of every `window` frames. @return the number of means */
static int64_t mean_windows(const double *energy, int64_t frames, int64_t window, double *mean) {
    int64_t n = frames / window;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < window; i++)
            sum += energy[k * window + i];
        mean[k] = sum / (double)window;
    }
    return n;
}

/* Returns the mean of x[from] to x[to - 1]. */
static double mean_of(const double *x, int64_t from, int64_t to) {
    double sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += x[i];
    return to > from ? sum / (double)(to - from) : 0;
}

/* Fits a line to the smoothed level after its peak between `top` and `bottom` dB. @return false if there are too few
 * values, or the level does not fall */
static bool slope_between(const double *level, int64_t n, int64_t peak, double top, double bottom, line *l) {
    int64_t first = peak, last;
    while (first < n && level[first] > top)
        first++;
    for (last = first; last < n && level[last] > bottom; last++) {
    }
    if (last - first < 3)
        return false;
    *l = fit_line(level, first, last);
    return l->slope < 0;
}

bool gc_decay_floor(const double *energy, int64_t frames, double rate, gc_noise_floor *found) {
    const int64_t least = gc_max(1, gc_min((int64_t)(0.01 * rate), frames / 20));
    int64_t window = least;
    double *mean = gc_calloc(frames / window + 1, 2 * (int64_t)sizeof *mean);
    *found = (gc_noise_floor){.cross = frames};
    if (!mean)
        return false;
    double *level = mean + frames / window + 1;
    double noise = mean_of(energy, frames - gc_max(1, frames / 10), frames);
    for (int iteration = 0; iteration < 6; iteration++) {
        int64_t n = mean_windows(energy, frames, window, mean), peak = 0;
        for (int64_t k = 0; k < n; k++) {
            level[k] = decibels(mean[k]);
            peak = mean[k] > mean[peak] ? k : peak;
        }
        line l;
        double floor = decibels(noise), top = fmin(level[peak] - 5, floor + 35);
        if (top < floor + 15)
            top = level[peak];
        if (!slope_between(level, n, peak, top, floor + 8, &l))
            break;
        double cross = (floor - l.offset) / l.slope + 0.5; /* in windows; a level is that of the window's centre */
        found->slope = l.slope / (double)window;
        found->cross = gc_max(1, (int64_t)fmin((double)frames, cross * (double)window));
        found->noise = noise;
        /* Estimates the noise again from where the decay is 10 dB below it; six windows for each 10 dB of decay. */
        int64_t quiet_from = found->cross + (int64_t)(10 / -found->slope);
        if (quiet_from < frames - frames / 20)
            noise = mean_of(energy, gc_min(quiet_from, frames - frames / 10), frames);
        window = gc_max(least, gc_min((int64_t)(10 / -found->slope / 6), frames / 20));
    }
    free(mean);
    if (!(found->slope < 0)) {
        *found = (gc_noise_floor){.cross = frames};
        return true;
    }
    /* A floor found within 6 dB of decay before the end is the end of the decay itself. */
    if ((double)found->cross + 6 / -found->slope >= (double)frames)
        *found = (gc_noise_floor){.cross = frames, .most = found->noise, .slope = found->slope};
    return true;
}

double gc_decay_rest(const gc_noise_floor *f) {
    double per_frame = f->slope < 0 ? -f->slope * log(10) / 10 : 0; /* nepers of energy */
    /* At the crossing the decay's energy equals the noise's. */
    return f->noise > 0 && per_frame > 0 ? f->noise / per_frame : 0;
}

/* Returns the level relative to d->start that a line has where the response ends: where the curve falls 10 dB below the
 * line, as it does before a cut, or at the last value. -infinity if noise ends the curve. */
static double find_end(const gc_decay_curve *d, const line *l) {
    int64_t i = 0;
    while (i < d->count && d->level[i] > l->offset + l->slope * (double)i - 10)
        i++;
    return i < d->count || !(d->lowest > -HUGE_VAL) ? l->offset + l->slope * (double)i - d->start : -HUGE_VAL;
}

gc_decay_line gc_decay_fit(const gc_decay_curve *d, double top, double bottom) {
    const double *curve = d->level;
    int64_t n = d->count, first = 0, last;
    while (first < n && curve[first] > d->start + top)
        first++;
    for (last = first; last < n && curve[last] >= d->start + bottom; last++) {
    }
    if (last - first < 2 || last >= n || d->start + bottom < d->lowest)
        return (gc_decay_line){(double)NAN, (double)NAN, -HUGE_VAL};
    line l = fit_line(curve, first, last);
    if (!(l.slope < 0))
        return (gc_decay_line){(double)NAN, (double)NAN, -HUGE_VAL};
    return (gc_decay_line){-60 / l.slope * d->seconds, 1000 * (1 - l.square), find_end(d, &l)};
}
