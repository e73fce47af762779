/* Room acoustic parameters. Decay times are computed by backward integration (Schroeder, JASA 37 (1965), 409) from the
 * crossing of decay and noise floor. The crossing is found by alternating estimates of slope and floor (Lundeby,
 * Vigran, Bietz & Vorlaender, Acustica 81 (1995), 344). The noise is subtracted, and the energy that an undisturbed
 * decay would have after the crossing is added (ISO 3382-1:2009, 5.3.3). */
#include "acoustics.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* Filters the samples in place to the octave around `band`, with cosine flanks of a sixth of an octave and zero phase.
 * @return false if memory is exhausted or the work was cancelled */
static bool filter_octave(double *samples, int64_t frames, double rate, double band) {
    int64_t points = gc_power_of_two(2 * frames);
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re);
    if (!re)
        return false;
    double *im = re + points;
    memcpy(re, samples, (size_t)frames * sizeof *re);
    bool good = gc_fourier(re, im, points, -1);
    for (int64_t k = 0; k < points && good; k++) {
        good = k % 65536 != 0 || !gc_cancelled();
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

/* Fits y[i] = offset + slope * i by least squares over first <= i < last. */
static void fit_line(const double *y, int64_t first, int64_t last, double *offset, double *slope) {
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

typedef struct noise_floor {
    int64_t cross; /* frame at which the decay meets the noise; the number of frames if it never does */
    double noise;  /* mean energy of a frame of noise; 0: none found */
    double slope;  /* of the decay in dB per frame, negative; 0: no decay found */
} noise_floor;

/* Returns the mean of x[from] to x[to - 1]. */
static double mean_of(const double *x, int64_t from, int64_t to) {
    double sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += x[i];
    return to > from ? sum / (double)(to - from) : 0;
}

/* Fits a line to the smoothed level after its peak between `top` and `bottom` dB. @return false if there are too few
 * values, or the level does not fall */
static bool slope_between(const double *level, int64_t n, int64_t peak, double top, double bottom, double *offset,
                          double *slope) {
    int64_t first = peak, last;
    while (first < n && level[first] > top)
        first++;
    for (last = first; last < n && level[last] > bottom; last++) {
    }
    if (last - first < 3)
        return false;
    fit_line(level, first, last, offset, slope);
    return *slope < 0;
}

/* Estimates decay slope and noise floor of the energies after the direct sound. @return false: memory exhausted */
static bool find_floor(const double *energy, int64_t frames, double rate, noise_floor *found) {
    const int64_t least = gc_max(1, gc_min((int64_t)(0.01 * rate), frames / 20));
    int64_t window = least;
    double *mean = gc_calloc(frames / window + 1, 2 * (int64_t)sizeof *mean);
    *found = (noise_floor){.cross = frames};
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
        double floor = decibels(noise), offset, slope, top = fmin(level[peak] - 5, floor + 35);
        if (top < floor + 15)
            top = level[peak];
        if (!slope_between(level, n, peak, top, floor + 8, &offset, &slope))
            break;
        double cross = (floor - offset) / slope + 0.5; /* in windows; a level is that of the window's centre */
        found->slope = slope / (double)window;
        found->cross = gc_max(1, gc_min(frames, (int64_t)(cross * (double)window)));
        found->noise = noise;
        /* Estimates the noise again from where the decay is 10 dB below it; six windows for each 10 dB of decay. */
        int64_t quiet_from = found->cross + (int64_t)(10 / -found->slope);
        if (quiet_from < frames - frames / 20)
            noise = mean_of(energy, gc_min(quiet_from, frames - frames / 10), frames);
        window = gc_max(least, gc_min((int64_t)(10 / -found->slope / 6), frames / 20));
    }
    free(mean);
    if (!(found->slope < 0)) {
        *found = (noise_floor){.cross = frames};
        return true;
    }
    /* A floor found within 6 dB of decay before the end is the end of the decay itself. */
    if (found->cross + (int64_t)(6 / -found->slope) >= frames)
        *found = (noise_floor){.cross = frames, .slope = found->slope};
    return true;
}

/* Schroeder's curve in dB. */
typedef struct decay_curve {
    double *level;
    int64_t count;
    double seconds; /* between two values */
    double lowest;  /* below this level the curve is too close to the noise */
} decay_curve;

/* Returns the seconds for a decay of 60 dB by the slope between two levels relative to the first value; NaN if the
 * curve does not reach `bottom` above d->lowest. */
static double decay_time(const decay_curve *d, double top, double bottom) {
    const double *curve = d->level;
    int64_t n = d->count;
    int64_t first = 0, last;
    double offset, slope;
    while (first < n && curve[first] > curve[0] + top)
        first++;
    for (last = first; last < n && curve[last] >= curve[0] + bottom; last++) {
    }
    if (last - first < 2 || last >= n || curve[0] + bottom < d->lowest)
        return (double)NAN;
    fit_line(curve, first, last, &offset, &slope);
    return slope < 0 ? -60 / slope * d->seconds : (double)NAN;
}

/* Returns the first frame within 20 dB of the peak. */
static int64_t find_onset(const double *samples, int64_t frames) {
    double most = 0;
    for (int64_t i = 0; i < frames; i++)
        most = fmax(most, fabs(samples[i]));
    int64_t i = 0;
    while (i < frames && fabs(samples[i]) < 0.1 * most)
        i++;
    return i < frames ? i : 0;
}

/* The energies of a response after its direct sound. */
typedef struct energies {
    const double *energy;
    double *remaining; /* Schroeder's curve: energy from a frame to the end, noise subtracted; frames + 1 values */
    int64_t frames;
    int64_t onset; /* frames before the direct sound */
    double rate;
    noise_floor floor;
} energies;

/* Writes both curves for a drawing. */
static void fill_curves(const energies *e, gc_decay *decay) {
    const double *energy = e->energy, *remaining = e->remaining;
    int64_t frames = e->frames, before = e->onset, cross = e->floor.cross, all = frames + before;
    double most = 0;
    decay->step = (double)all / GC_ACOUSTICS_CURVE / e->rate;
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++) {
        int64_t from = all * k / GC_ACOUSTICS_CURVE - before,
                to = gc_max(from + 1, all * (k + 1) / GC_ACOUSTICS_CURVE - before);
        double sum = 0;
        for (int64_t i = gc_max(0, from); i < gc_min(to, frames); i++)
            sum += energy[i];
        decay->energy[k] = sum / (double)(to - from);
        most = fmax(most, decay->energy[k]);
        decay->remaining[k] = from >= 0 && from < cross && remaining[from] > 0
                                  ? 10 * log10(remaining[from] / remaining[0])
                              : from < 0 ? 0
                                         : (double)NAN;
    }
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++)
        decay->energy[k] = decay->energy[k] > 0 ? 10 * log10(decay->energy[k] / most) : (double)NAN;
}

/* Integrates the energies backward into e->remaining and computes centre time, definition and clarity. */
static void integrate(const energies *e, gc_acoustics *r) {
    const noise_floor *f = &e->floor;
    double *remaining = e->remaining;
    double per_frame = f->slope < 0 ? -f->slope * log(10) / 10 : 0; /* nepers of energy */
    if (f->noise > 0 && per_frame > 0) /* at the crossing the decay's energy equals the noise's */
        remaining[f->cross] = f->noise / per_frame;
    double sum = remaining[f->cross], moment = 0, early50 = 0, early80 = 0;
    for (int64_t i = f->cross - 1; i >= 0; i--) {
        double energy = e->energy[i] - f->noise, t = (double)i / e->rate;
        sum += energy;
        remaining[i] = fmax(sum, 0);
        moment += energy * t;
        early50 += t < 0.05 ? energy : 0;
        early80 += t < 0.08 ? energy : 0;
    }
    double all = remaining[0];
    if (!(all > 0))
        return;
    /* Subtracting the noise can make a part negative. A response that ends within 80 ms has no late energy and no
     * clarity; 150 dB below the total, only rounding errors remain. */
    int64_t after = (int64_t)ceil(0.08 * e->rate);
    double late = after < f->cross ? remaining[after] : 0;
    r->centre = fmax(0, moment / all);
    r->d50 = fmin(fmax(early50 / all, 0), 1);
    r->c80 = early80 > 0 && late > 1e-15 * all ? 10 * log10(early80 / late) : (double)NAN;
}

/* Computes the decay times from e->remaining. @return false if memory is exhausted */
static bool read_decay_times(const energies *e, gc_acoustics *r) {
    const noise_floor *f = &e->floor;
    /* About 16384 values determine the slope; more would only cost time. */
    int64_t step = gc_max(1, f->cross / 16384), n = f->cross / step;
    double *level = gc_calloc(n + 1, (int64_t)sizeof *level);
    if (!level)
        return false;
    for (int64_t k = 0; k < n; k++)
        level[k] = decibels(e->remaining[k * step]);
    /* Where noise ends the decay, only levels at least 5 dB above the remaining energy at the crossing are used. */
    const decay_curve curve = {.level = level,
                               .count = n,
                               .seconds = (double)step / e->rate,
                               .lowest = f->noise > 0 ? decibels(e->remaining[f->cross]) + 5 : -HUGE_VAL};
    r->edt = decay_time(&curve, 0, -10);
    r->t20 = decay_time(&curve, -5, -25);
    r->t30 = decay_time(&curve, -5, -35);
    free(level);
    return true;
}

/* Returns the noise floor in dB relative to the highest mean energy of 10 ms; -infinity without noise. */
static double noise_level(const energies *e) {
    int64_t window = gc_max(1, gc_min((int64_t)(0.01 * e->rate), e->frames));
    double highest = 0;
    for (int64_t i = 0; i + window <= e->frames; i += window)
        highest = fmax(highest, mean_of(e->energy, i, i + window));
    return e->floor.noise > 0 && highest > 0 ? 10 * log10(e->floor.noise / highest) : -HUGE_VAL;
}

/* Computes all parameters but the onset. @return false if memory is exhausted */
static bool read_energies(energies *e, gc_acoustics *r, gc_decay *decay) {
    e->remaining = gc_calloc(e->frames + 1, (int64_t)sizeof *e->remaining);
    bool good = e->remaining && find_floor(e->energy, e->frames, e->rate, &e->floor);
    if (good) {
        integrate(e, r);
        good = read_decay_times(e, r);
        r->noise = noise_level(e);
        if (decay)
            fill_curves(e, decay);
    }
    free(e->remaining);
    return good;
}

bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *r, gc_decay *decay) {
    double *samples = gc_calloc(frames, (int64_t)sizeof *samples);
    const double undefined = (double)NAN;
    *r = (gc_acoustics){0, undefined, undefined, undefined, undefined, undefined, undefined, undefined};
    if (!samples)
        return false;
    for (int64_t i = 0; i < frames; i++)
        samples[i] = (double)taps[i];
    bool good = band <= 0 || filter_octave(samples, frames, rate, band);
    int64_t onset = good ? find_onset(samples, frames) : 0;
    double sum = 0;
    for (int64_t i = 0; i < frames; i++) {
        samples[i] *= samples[i];
        sum += samples[i];
    }
    r->onset = (double)onset / rate;
    if (good && sum > 0) {
        energies e = {.energy = samples + onset, .frames = frames - onset, .onset = onset, .rate = rate};
        good = read_energies(&e, r, decay);
    }
    free(samples);
    return good;
}
