/*
 * Decay times by backward integration (Schroeder, JASA 37 (1965), 409), from where the decay meets the noise, which is
 * found by going to and fro between slope and floor (Lundeby, Vigran, Bietz & Vorlaender, Acustica 81 (1995), 344); the
 * noise is taken off, and what the decay would hold behind that point is put on (ISO 3382-1:2009, 5.3.3).
 */
#include "acoustics.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* The octave around `band`: cosine flanks of a sixth of an octave, no phase. */
static bool filter(double *samples, int64_t frames, double rate, double band) {
    int64_t points = gc_power_of_two(2 * frames);
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + points;
    memcpy(re, samples, (size_t)frames * sizeof *re);
    bool good = gc_fourier(re, im, points, -1);
    for (int64_t k = 0; k < points && good; k++) {
        double hz = (double)(k <= points / 2 ? k : points - k) * rate / (double)points;
        double off = hz > 0 ? fabs(log2(hz / band)) : 10, edge = (off - 0.5) * 6; /* -0.5 .. 0.5 across the flank */
        double weight = edge <= -0.5 ? 1 : edge >= 0.5 ? 0 : 0.5 - 0.5 * sin(pi * edge);
        re[k] *= weight / (double)points;
        im[k] *= weight / (double)points;
    }
    good = good && gc_fourier(re, im, points, 1);
    memcpy(samples, re, (size_t)frames * sizeof *re);
    free(re);
    return good;
}

/* Least squares through (first + i) and y[i]. */
static void fit(const double *y, int64_t first, int64_t last, double *offset, double *slope) {
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int64_t i = first; i < last; i++) {
        double x = (double)i;
        n++;
        sx += x;
        sy += y[i];
        sxx += x * x;
        sxy += x * y[i];
    }
    double d = n * sxx - sx * sx;
    *slope = d > 0 ? (n * sxy - sx * sy) / d : 0;
    *offset = n > 0 ? (sy - *slope * sx) / n : 0;
}

static double decibels(double power) {
    return 10 * log10(fmax(power, 1e-300));
}

/* Mean energies of `window` frames each; gives how many there are. */
static int64_t smooth(const double *energy, int64_t frames, int64_t window, double *mean) {
    int64_t n = frames / window;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < window; i++)
            sum += energy[k * window + i];
        mean[k] = sum / (double)window;
    }
    return n;
}

typedef struct floor_found {
    int64_t cross; /* frame at which the decay meets the noise; the end when it never does */
    double noise;  /* mean energy of a frame of it; 0: none */
    double slope;  /* dB a frame, below 0; 0: no decay */
    double level;  /* dB of the decay at `cross` */
} floor_found;

static double mean_of(const double *x, int64_t from, int64_t to) {
    double sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += x[i];
    return to > from ? sum / (double)(to - from) : 0;
}

/* The decay's slope between `top` and `bottom` dB of the smoothed curve, from its peak on. */
static bool slope_between(const double *level, int64_t n, int64_t peak, double top, double bottom, double *offset,
                          double *slope) {
    int64_t first = peak, last;
    while (first < n && level[first] > top)
        first++;
    for (last = first; last < n && level[last] > bottom; last++) {
    }
    if (last - first < 3)
        return false;
    fit(level, first, last, offset, slope);
    return *slope < 0;
}

/* Energies from the direct sound on. */
static bool find_floor(const double *energy, int64_t frames, double rate, floor_found *found) {
    const int64_t least = gc_max(1, gc_min((int64_t)(0.01 * rate), frames / 20));
    int64_t window = least;
    double *mean = gc_calloc(frames / window + 1, 2 * (int64_t)sizeof *mean);
    *found = (floor_found){.cross = frames};
    if (!mean)
        return false;
    double *level = mean + frames / window + 1;
    double noise = mean_of(energy, frames - gc_max(1, frames / 10), frames);
    for (int turn = 0; turn < 6; turn++) {
        int64_t n = smooth(energy, frames, window, mean), peak = 0;
        for (int64_t k = 0; k < n; k++) {
            level[k] = decibels(mean[k]);
            peak = mean[k] > mean[peak] ? k : peak;
        }
        double floor = decibels(noise), offset, slope, top = fmin(level[peak] - 5, floor + 35);
        if (top < floor + 15)
            top = level[peak];
        if (!slope_between(level, n, peak, top, floor + 8, &offset, &slope))
            break;
        double cross = (floor - offset) / slope + 0.5; /* in windows; levels belong to their middles */
        found->slope = slope / (double)window;
        found->cross = gc_max(1, gc_min(frames, (int64_t)(cross * (double)window)));
        found->noise = noise;
        /* Noise anew, from where the decay is 10 dB under it; windows of a few to each 10 dB. */
        int64_t behind = found->cross + (int64_t)(10 / -found->slope);
        if (behind < frames - frames / 20)
            noise = mean_of(energy, gc_min(behind, frames - frames / 10), frames);
        window = gc_max(least, gc_min((int64_t)(10 / -found->slope / 6), frames / 20));
    }
    free(mean);
    if (!(found->slope < 0)) {
        *found = (floor_found){.cross = frames};
        return true;
    }
    /* A floor that is only the decay's own end is none. */
    if (found->cross + (int64_t)(6 / -found->slope) >= frames)
        *found = (floor_found){.cross = frames, .slope = found->slope};
    return true;
}

/* Seconds for 60 dB by the curve between two levels under its beginning; NaN: it does not reach there 10 dB above the
 * noise. `curve` is in dB, a value each `step` frames. */
static double decay_time(const double *curve, int64_t n, double top, double bottom, double lowest, double rate,
                         int64_t step) {
    int64_t first = 0, last;
    double offset, slope;
    while (first < n && curve[first] > curve[0] + top)
        first++;
    for (last = first; last < n && curve[last] >= curve[0] + bottom; last++) {
    }
    if (last - first < 2 || last >= n || curve[0] + bottom < lowest)
        return (double)NAN;
    fit(curve, first, last, &offset, &slope);
    return slope < 0 ? -60 / slope * (double)step / rate : (double)NAN;
}

/* Frames until the direct sound. */
static int64_t onset_of(const double *samples, int64_t frames) {
    double most = 0;
    for (int64_t i = 0; i < frames; i++)
        most = fmax(most, fabs(samples[i]));
    int64_t i = 0;
    while (i < frames && fabs(samples[i]) < 0.1 * most)
        i++;
    return i < frames ? i : 0;
}

static void fill_curve(gc_decay *decay, const double *energy, const double *left, int64_t frames, int64_t cross,
                       int64_t before, double rate) {
    int64_t all = frames + before;
    double most = 0;
    decay->step = (double)all / GC_ACOUSTICS_CURVE / rate;
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++) {
        int64_t from = all * k / GC_ACOUSTICS_CURVE - before,
                to = gc_max(from + 1, all * (k + 1) / GC_ACOUSTICS_CURVE - before);
        double sum = 0;
        for (int64_t i = gc_max(0, from); i < gc_min(to, frames); i++)
            sum += energy[i];
        decay->energy[k] = sum / (double)(to - from);
        most = fmax(most, decay->energy[k]);
        decay->left[k] = from >= 0 && from < cross && left[from] > 0 ? 10 * log10(left[from] / left[0])
                         : from < 0                                  ? 0
                                                                     : (double)NAN;
    }
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++)
        decay->energy[k] = decay->energy[k] > 0 ? 10 * log10(decay->energy[k] / most) : (double)NAN;
}

/* From energies behind the direct sound. */
static bool read_decay(const double *energy, int64_t frames, double rate, gc_acoustics *r, gc_decay *decay,
                       int64_t before) {
    floor_found f;
    double *left = gc_calloc(frames + 1, (int64_t)sizeof *left);
    if (!left || !find_floor(energy, frames, rate, &f)) {
        free(left);
        return false;
    }
    double per_frame = f.slope < 0 ? -f.slope * log(10) / 10 : 0; /* nepers of energy */
    if (f.noise > 0 && per_frame > 0) /* the decay itself at the crossing is as strong as the noise */
        left[f.cross] = f.noise / per_frame;
    double sum = left[f.cross], moment = 0, early50 = 0, early80 = 0;
    for (int64_t i = f.cross - 1; i >= 0; i--) {
        double e = energy[i] - f.noise, t = (double)i / rate;
        sum += e;
        left[i] = fmax(sum, 0);
        moment += e * t;
        early50 += t < 0.05 ? e : 0;
        early80 += t < 0.08 ? e : 0;
    }
    double all = left[0];
    r->centre = moment / all;
    r->d50 = early50 / all;
    r->c80 = 10 * log10(early80 / fmax(all - early80, 1e-300));
    /* At most some ten thousand places of the curve: a longer one says no more. */
    int64_t step = gc_max(1, f.cross / 16384), n = f.cross / step;
    double *curve = gc_calloc(n + 1, (int64_t)sizeof *curve);
    bool good = curve != NULL;
    if (good) {
        for (int64_t k = 0; k < n; k++)
            curve[k] = decibels(left[k * step]);
        /* Where noise ends the decay, what is told stays 5 dB clear of the last of it. */
        double lowest = f.noise > 0 ? decibels(left[f.cross]) + 5 : -HUGE_VAL;
        r->edt = decay_time(curve, n, 0, -10, lowest, rate, step);
        r->t20 = decay_time(curve, n, -5, -25, lowest, rate, step);
        r->t30 = decay_time(curve, n, -5, -35, lowest, rate, step);
    }
    int64_t window = gc_max(1, gc_min((int64_t)(0.01 * rate), frames));
    double loudest = 0;
    for (int64_t i = 0; i + window <= frames; i += window)
        loudest = fmax(loudest, mean_of(energy, i, i + window));
    r->noise = f.noise > 0 && loudest > 0 ? 10 * log10(f.noise / loudest) : -HUGE_VAL;
    if (decay)
        fill_curve(decay, energy, left, frames, f.cross, before, rate);
    free(curve);
    free(left);
    return good;
}

bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *r, gc_decay *decay) {
    double *samples = gc_calloc(frames, (int64_t)sizeof *samples);
    const double none = (double)NAN;
    *r = (gc_acoustics){0, none, none, none, none, none, none, none};
    if (!samples)
        return false;
    for (int64_t i = 0; i < frames; i++)
        samples[i] = (double)taps[i];
    bool good = band <= 0 || filter(samples, frames, rate, band);
    int64_t onset = good ? onset_of(samples, frames) : 0;
    double sum = 0;
    for (int64_t i = 0; i < frames; i++) {
        samples[i] *= samples[i];
        sum += samples[i];
    }
    r->onset = (double)onset / rate;
    if (good && sum > 0)
        good = read_decay(samples + onset, frames - onset, rate, r, decay, onset);
    free(samples);
    return good;
}
