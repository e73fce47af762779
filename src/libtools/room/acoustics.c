/*
 * Room acoustic parameters of an impulse response by ISO 3382-1:2009 and ISO 3382-2:2008.
 *
 * A channel is transformed once. Each band is cut out by an octave filter (IEC 61260-1:2014), a function of frequency;
 * early and late energies are separated before the filter, and the decay of the filter itself is corrected by its
 * autocorrelation. The decay is integrated backwards, from where it meets the noise floor, and straight lines are
 * fitted to parts of the curve.
 */
#include "acoustics.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Octave filters ---------------------------------------------------------------------------------------------- */

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
    const double w = 2 * M_PI * b->centre, width = w / quality(b);
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
    double complex sum = 0, s = GC_J * 2 * M_PI * hz;
    for (int k = 0; k < c->poles; k++)
        sum += c->residue[k] / (s - c->pole[k]);
    return sum;
}

/* ---- Decays ------------------------------------------------------------------------------------------------------ */

typedef struct gc_noise_floor {
    int64_t cross; /* frame at which the decay meets the noise; the number of frames if it never does */
    double noise;  /* mean energy of a frame of noise; 0: none found */
    double most;   /* noise that the last frames of a decay without a floor may contain; else 0 */
    double slope;  /* of the decay in dB per frame, negative; 0: no decay found */
} gc_noise_floor;

/* Schroeder's curve in dB. */
typedef struct gc_decay_curve {
    const double *level;
    int64_t count;
    double seconds; /* between two values */
    double start;   /* the level of 0 dB: all of the energy */
    double lowest;  /* below this level the curve is too close to the noise; -infinity without noise */
} gc_decay_curve;

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

/* Estimates slope and noise floor of the energies from the direct sound on. @return false: memory exhausted */
static bool decay_floor(const double *energy, int64_t frames, double rate, gc_noise_floor *found) {
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

/* Returns the energy that an undisturbed decay would have after the crossing; 0 without noise. */
static double decay_rest(const gc_noise_floor *f) {
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

/* Fits a line by least squares between two levels in dB relative to d->start (ISO 3382-1:2009, 5.3.3). */
static gc_decay_line decay_fit(const gc_decay_curve *d, double top, double bottom) {
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

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

static const double limits[GC_TIMES] = {0, 0.005, 0.05, 0.08};

/* A band from the direct sound on. */
typedef struct band_energies {
    const double *decay; /* squares of the response filtered in reverse */
    int64_t frames;
    double before;         /* energy that the reversed filter moved before the direct sound */
    double moment;         /* of that energy: sum of energy times negative frames */
    double late[GC_TIMES]; /* energies from each limit on, with the noise */
    double delay;          /* frames by which the filter moved energy forward on average */
    gc_noise_floor floor;
} band_energies;

struct gc_channel {
    const float *taps;
    int64_t frames, points; /* of the response, of the transforms */
    int64_t onset;
    double rate;
    double *xr, *xi;        /* spectrum */
    double *late[GC_TIMES]; /* power spectra of the response from each limit on, points / 2 values; NULL of the onset */
    double *re, *im;        /* of the band: decay energies, and the distribution of the energy */
    double *curve;          /* frames + 1 */
    double energy[GC_TIMES]; /* of the last band, noise subtracted */
    band_energies last;
};

int64_t gc_channel_find_onset(const float *taps, int64_t frames) {
    const double least = 0.1 * (double)gc_magnitude(taps, frames);
    int64_t i = 0;
    while (i < frames && fabs((double)taps[i]) < least)
        i++;
    return i;
}

/* Returns the weight of a frame in the window from a limit on: half a Hann window of 5 ms, which contains as much
 * energy as a step at the limit. A step would spread the energy of strong bands into weak ones. */
static double window_at(int64_t frame, double limit, double rate) {
    double place = ((double)frame / rate - limit) / 0.005 + 0.625;
    return place <= 0 ? 0 : place >= 1 ? 1 : 0.5 - 0.5 * cos(M_PI * place);
}

/* Computes the power spectra of two windows with one transform. @param second GC_TIMES: only the first */
static bool transform_windows(gc_channel *c, int first, int second) {
    memset(c->re, 0, 2 * (size_t)c->points * sizeof *c->re);
    for (int64_t i = c->onset; i < c->frames; i++) {
        double x = (double)c->taps[i];
        c->re[i] = x * window_at(i - c->onset, limits[first], c->rate);
        c->im[i] = second < GC_TIMES ? x * window_at(i - c->onset, limits[second], c->rate) : 0;
    }
    if (!gc_fourier(c->re, c->im, c->points, -1))
        return false;
    for (int64_t k = 1; k < c->points / 2; k++) {
        int64_t m = c->points - k;
        c->late[first][k] = (pow(c->re[k] + c->re[m], 2) + pow(c->im[k] - c->im[m], 2)) / 4;
        if (second < GC_TIMES)
            c->late[second][k] = (pow(c->im[k] + c->im[m], 2) + pow(c->re[m] - c->re[k], 2)) / 4;
    }
    return true;
}

gc_channel *gc_channel_new(const float *taps, int64_t frames, double rate, int64_t onset) {
    gc_channel *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (gc_channel){.taps = taps, .frames = frames, .rate = rate};
    c->points = gc_power_of_two(gc_max(4, 2 * frames));
    c->onset = onset >= 0 ? gc_min(onset, frames - 1) : gc_channel_find_onset(taps, frames);
    c->xr = gc_calloc(c->points / 2, 11 * (int64_t)sizeof *c->xr);
    c->curve = gc_calloc(frames + 1, (int64_t)sizeof *c->curve);
    bool good = c->xr && c->curve;
    if (good) {
        c->xi = c->xr + c->points;
        c->re = c->xi + c->points;
        c->im = c->re + c->points;
        for (int k = GC_FROM_5MS; k < GC_TIMES; k++)
            c->late[k] = c->im + c->points + (k - 1) * (c->points / 2);
        for (int64_t i = 0; i < frames; i++)
            c->xr[i] = (double)taps[i];
        good = gc_fourier(c->xr, c->xi, c->points, -1) && transform_windows(c, GC_FROM_50MS, GC_FROM_80MS) &&
               transform_windows(c, GC_FROM_5MS, GC_TIMES);
    }
    if (!good) {
        gc_channel_free(c);
        return NULL;
    }
    return c;
}

void gc_channel_free(gc_channel *c) {
    if (!c)
        return;
    free(c->xr);
    free(c->curve);
    free(c);
}

int64_t gc_channel_onset(const gc_channel *c) {
    return c->onset;
}

/* ---- Filtering --------------------------------------------------------------------------------------------------- */

/* Squares the whole spectrum, and adds up the energies from each limit on. */
static void square_channel(gc_channel *c, band_energies *b) {
    memset(c->re, 0, 2 * (size_t)c->points * sizeof *c->re);
    for (int64_t i = 0; i < c->frames; i++)
        c->re[i] = c->im[i] = (double)c->taps[i] * (double)c->taps[i];
    for (int k = GC_FROM_5MS; k < GC_TIMES; k++)
        for (int64_t i = c->onset + (int64_t)ceil(limits[k] * c->rate - 1e-9); i < c->frames; i++)
            b->late[k] += c->re[i];
}

/* Writes the squares of the response filtered in reverse to c->re and the distribution of the energy to c->im, and adds
 * up the energies from each limit on. The filter delays energy by its group delay, weighted with its power. */
static bool filter_channel(gc_channel *c, const gc_octave_band *band, band_energies *b) {
    const int64_t points = c->points;
    const gc_octave_correlation correlation = gc_octave_correlate(band);
    double complex previous = 0;
    double sum = 0, turns = 0;
    c->re[0] = c->im[0] = c->re[points / 2] = c->im[points / 2] = 0;
    for (int64_t k = 1; k < points / 2; k++) {
        if (k % 65536 == 0 && gc_cancelled())
            return false;
        double hz = (double)k * c->rate / (double)points;
        double complex h = gc_octave_response(band, hz), x = (c->xr[k] + GC_J * c->xi[k]) / (double)points;
        double complex y = x * conj(h), z = x * conj(gc_octave_one_sided(&correlation, hz));
        double power = creal(h) * creal(h) + cimag(h) * cimag(h);
        for (int limit = GC_FROM_5MS; limit < GC_TIMES; limit++)
            b->late[limit] += 2 * power * c->late[limit][k] / (double)points;
        if (power > 1e-3) {
            turns -= power * carg(h * conj(previous));
            sum += power;
        }
        previous = h;
        c->re[k] = creal(y) - cimag(z); /* the spectrum of y + i z */
        c->im[k] = cimag(y) + creal(z);
        c->re[points - k] = creal(y) + cimag(z);
        c->im[points - k] = creal(z) - cimag(y);
    }
    b->delay = sum > 0 ? turns / sum / (2 * M_PI) * (double)points : 0;
    if (!gc_fourier(c->re, c->im, points, 1))
        return false;
    for (int64_t i = 0; i < points; i++) {
        c->re[i] *= c->re[i];
        c->im[i] *= i < c->frames ? 2 * (double)c->taps[i] : 0;
    }
    return true;
}

/* Filters the channel and describes the band from the direct sound on. @return false if that fails */
static bool open_band(gc_channel *c, const gc_octave_band *band, band_energies *b) {
    *b = (band_energies){.decay = c->re + c->onset, .frames = c->frames - c->onset};
    if (!band)
        square_channel(c, b);
    else if (!filter_channel(c, band, b))
        return false;
    if (!decay_floor(b->decay, b->frames, c->rate, &b->floor))
        return false;
    if (!band)
        return true;
    for (int64_t i = 0; i < c->onset; i++) { /* noise before the direct sound is no energy that the filter moved */
        b->before += c->re[i] - b->floor.noise;
        b->moment += (c->re[i] - b->floor.noise) * (double)(i - c->onset);
    }
    for (int64_t i = c->points - c->points / 4; i < c->points; i++) { /* negative times, at the end of the period */
        b->before += c->re[i];
        b->moment += c->re[i] * (double)(i - c->points - c->onset);
    }
    return true;
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* Integrates the decay backward from the crossing, noise subtracted. */
static void integrate(const band_energies *b, double *curve) {
    double sum = decay_rest(&b->floor);
    for (int64_t i = b->floor.cross; i >= 0; i--) {
        sum += i < b->floor.cross ? b->decay[i] - b->floor.noise : 0;
        curve[i] = fmax(sum, 0);
    }
}

/* Subtracts the noise from the energies after each limit: all energy behind the crossing is replaced by that of the
 * undisturbed decay. */
static void subtract_noise(gc_channel *c, double all) {
    const band_energies *b = &c->last;
    double behind = 0;
    for (int64_t i = b->floor.cross; i < b->frames; i++)
        behind += b->decay[i];
    c->energy[GC_FROM_ONSET] = all;
    for (int k = GC_FROM_5MS; k < GC_TIMES; k++) {
        double frames = (double)b->floor.cross - limits[k] * c->rate;
        double late = b->late[k] - behind - b->floor.noise * frames + decay_rest(&b->floor);
        c->energy[k] = frames > 0 ? fmax(late, 0) : 0;
    }
}

/* Returns early against late energy in dB. A response that ends before the limit has no late energy and no clarity;
 * 120 dB below the total, only rounding errors remain. */
static double clarity(double all, double late) {
    return all - late > 0 && late > 1e-12 * all ? 10 * log10((all - late) / late) : (double)NAN;
}

/* Computes clarity, definition and centre time: ISO 3382-1:2009, A.2.3. */
static void read_early(const gc_channel *c, gc_acoustics *r) {
    const band_energies *b = &c->last;
    double all = c->energy[GC_FROM_ONSET], moment = b->moment, rest = decay_rest(&b->floor);
    r->energy = all / c->rate;
    for (int64_t i = 1; i <= b->floor.cross; i++) /* the integral of t e(t) is that of the remaining energy */
        moment += c->curve[i];
    if (b->floor.noise > 0) /* of the exponential decay after the crossing */
        moment += rest * rest / b->floor.noise;
    r->centre = fmax(0, moment / all + b->delay) / c->rate;
    r->d50 = fmin(fmax(1 - c->energy[GC_FROM_50MS] / all, 0), 1);
    r->c50 = clarity(all, c->energy[GC_FROM_50MS]);
    r->c80 = clarity(all, c->energy[GC_FROM_80MS]);
}

/* Converts the curve to dB. At most 16384 values determine a slope; more would only cost time. */
static gc_decay_curve to_levels(gc_channel *c, double all) {
    const gc_noise_floor *f = &c->last.floor;
    int64_t step = gc_max(1, f->cross / 16384);
    double rest = c->curve[f->cross];
    gc_decay_curve d = {.level = c->curve,
                        .count = f->cross / step,
                        .seconds = (double)step / c->rate,
                        .start = 10 * log10(fmax(all, 1e-300)),
                        /* Where noise ends the decay, only levels 5 dB above the remaining energy are used. */
                        .lowest = f->noise > 0 ? 10 * log10(fmax(rest, 1e-300)) + 5 : -HUGE_VAL};
    for (int64_t k = 0; k < d.count; k++)
        c->curve[k] = 10 * log10(fmax(c->curve[k * step], 1e-300));
    return d;
}

/* Writes both curves for a drawing; the curve must hold energies. */
static void fill_curves(const gc_channel *c, double all, gc_decay *decay) {
    const band_energies *b = &c->last;
    double most = 0;
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++) {
        int64_t from = c->frames * k / GC_ACOUSTICS_CURVE - c->onset,
                to = gc_max(from + 1, c->frames * (k + 1) / GC_ACOUSTICS_CURVE - c->onset);
        double sum = 0;
        for (int64_t i = gc_max(0, from); i < gc_min(to, b->frames); i++)
            sum += b->decay[i];
        decay->energy[k] = sum / (double)(to - from);
        most = fmax(most, decay->energy[k]);
        decay->remaining[k] = from < 0                                      ? 0
                              : from < b->floor.cross && c->curve[from] > 0 ? 10 * log10(c->curve[from] / all)
                                                                            : (double)NAN;
    }
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++)
        decay->energy[k] = decay->energy[k] > 0 ? 10 * log10(decay->energy[k] / most) : (double)NAN;
}

/* Computes EDT, T20 and T30 (ISO 3382-1:2009, A.2.2 and 5.3.3), non-linearity and curvature (ISO 3382-2:2008, annex B),
 * and sets the doubts of the response's end. Overwrites the curve. */
static void read_decay(gc_channel *c, double all, gc_acoustics *r) {
    gc_decay_curve d = to_levels(c, all);
    gc_decay_line t20 = decay_fit(&d, -5, -25), t30 = decay_fit(&d, -5, -35);
    const double bottom = fmax(-25, d.lowest - d.start + 0.01);
    r->edt = decay_fit(&d, 0, -10).time;
    r->fall = bottom <= -5 - 8 ? decay_fit(&d, -5, bottom).time : (double)NAN;
    r->t20 = t20.time;
    r->t30 = t30.time;
    r->nonlinearity20 = t20.nonlinearity;
    r->nonlinearity30 = t30.nonlinearity;
    r->curvature = 100 * (t30.time / t20.time - 1);
    r->doubt = (t20.end > -25 - 10 ? GC_DOUBT_END20 : 0U) | (t30.end > -35 - 10 ? GC_DOUBT_END30 : 0U);
}

/* Returns the noise floor in dB relative to the highest mean energy of 10 ms; -infinity without noise. */
static double noise_level(const band_energies *b, double rate) {
    int64_t window = gc_max(1, gc_min((int64_t)(0.01 * rate), b->frames));
    double highest = 0;
    for (int64_t i = 0; i + window <= b->frames; i += window) {
        double sum = 0;
        for (int64_t k = i; k < i + window; k++)
            sum += b->decay[k];
        highest = fmax(highest, sum / (double)window);
    }
    return b->floor.noise > 0 && highest > 0 ? 10 * log10(b->floor.noise / highest) : -HUGE_VAL;
}

/* Computes the impulse-to-noise ratio: the initial level of an exponential decay with the energy and the decay time of
 * this one, above the noise (Hak, Wenmaekers & van Luxemburg, Acta Acustica 98 (2012), 892). Noise that may begin just
 * before the response's end cannot be subtracted and must therefore lie 15 dB below a range instead of 10. */
static void compare_noise(const gc_noise_floor *f, double rate, gc_acoustics *r) {
    double time = !isnan(r->t30) ? r->t30 : r->t20;
    if (isnan(time) && f->slope < 0)
        time = -60 / f->slope / rate;
    const double initial = 6 * log(10) / time * r->energy;
    r->inr = f->noise > 0 ? 10 * log10(initial / f->noise) : f->slope < 0 ? HUGE_VAL : (double)NAN;
    r->doubt |= f->most > initial / pow(10, 4) ? GC_DOUBT_END20 : 0U;
    r->doubt |= f->most > initial / pow(10, 5) ? GC_DOUBT_END30 : 0U;
}

/* Returns the other gc_doubt flags. @param band NULL: the whole spectrum */
static unsigned judge(const gc_acoustics *r, const gc_octave_band *band) {
    double time = !isnan(r->t30) ? r->t30 : !isnan(r->t20) ? r->t20 : r->edt;
    unsigned doubt = 0;
    if (band && (band->high - band->low) * fmin(time, r->edt) < 4)
        doubt |= GC_DOUBT_FILTER;
    doubt |= r->inr < 35 ? GC_DOUBT_NOISE20 : 0;
    doubt |= r->inr < 45 ? GC_DOUBT_NOISE30 : 0;
    if (r->nonlinearity20 > 10 || r->nonlinearity30 > 10)
        doubt |= GC_DOUBT_NONLINEAR;
    if (fabs(r->curvature) > 10)
        doubt |= GC_DOUBT_CURVED;
    return doubt;
}

static gc_acoustics undefined_parameters(double onset) {
    const double none = (double)NAN;
    return (gc_acoustics){onset, none, none, none, none, none, none, none, none, none, none, none, none, none, 0, 0};
}

bool gc_channel_band(gc_channel *c, const gc_octave_band *band, gc_acoustics *r, gc_decay *decay) {
    band_energies *b = &c->last;
    *r = undefined_parameters((double)c->onset / c->rate);
    if (decay)
        *decay = (gc_decay){.step = (double)c->frames / GC_ACOUSTICS_CURVE / c->rate};
    for (int k = 0; decay && k < GC_ACOUSTICS_CURVE; k++)
        decay->energy[k] = decay->remaining[k] = (double)NAN;
    if (!open_band(c, band, b))
        return false;
    integrate(b, c->curve);
    double all = c->curve[0] + fmax(0, b->before);
    subtract_noise(c, all);
    if (!(all > 0))
        return true;
    read_early(c, r);
    if (decay)
        fill_curves(c, all, decay);
    read_decay(c, all, r);
    r->noise = noise_level(b, c->rate);
    compare_noise(&b->floor, c->rate, r);
    r->doubt |= judge(r, band);
    return true;
}

const double *gc_channel_energies(const gc_channel *c) {
    return c->energy;
}

const double *gc_channel_densities(const gc_channel *c, int64_t *count, double *noise) {
    *count = c->onset + c->last.floor.cross;
    *noise = c->last.floor.noise;
    return c->im;
}

bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *r, gc_decay *decay) {
    gc_channel *c = gc_channel_new(taps, frames, rate, -1);
    gc_octave_band octave = gc_octave_at(band > 0 ? band : 1000);
    *r = undefined_parameters(0);
    bool good = c && gc_channel_band(c, band > 0 ? &octave : NULL, r, decay);
    gc_channel_free(c);
    return good;
}
