/*
 * Removal of what a measurement adds to a response.
 *
 * Noise. In each octave the decay meets the noise at a time that the analysis of acoustics.c finds, where both have the
 * same power. From MARGIN decibels of the decay earlier on, noise of the octave replaces it whose power falls on as the
 * decay did; or silence. The octaves are cut out of the spectrum by masks that add up to 1, and only the difference
 * between what was there and what replaces it is added to the response, so that nothing changes before the first octave
 * is replaced.
 *
 * Hum and offset are what the part behind the decay has in common with a constant, and with harmonics of 50 or 60 Hz
 * that stand out of their surroundings. They are subtracted from the whole response.
 */
#include "clean.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 20 /* dB */, HARMONICS = 20 };

static const double stands_out = 20 /* times the power around it */, shortest = 0.25 /* seconds that show hum */,
                    quiet_enough = 65 /* dB: noise further below a decay is that of the analysis */;

/* A channel that is being cleaned. */
typedef struct work {
    double rate;
    int64_t frames, total, points; /* of the response, of the result, and of the transforms */
    double *x;                     /* total samples */
    double *re, *im, *sum;         /* points each; sum: of the octaves' differences */
    gc_clean_channel *c;
} work;

/* ---- Hum and offset ---------------------------------------------------------------------------------------------- */

/* Returns the amplitude of a tone in `count` samples, in a Hann window, as a complex number with its phase at sample 0.
 */
static double complex tone(const double *x, int64_t count, double hz, double rate) {
    const double complex turn = cexp(-GC_J * 2 * M_PI * hz / rate);
    double complex phase = 1, sum = 0;
    for (int64_t n = 0; n < count; n++) {
        sum += x[n] * (0.5 - 0.5 * cos(2 * M_PI * ((double)n + 0.5) / (double)count)) * phase;
        phase *= turn;
    }
    return sum * 4 / (double)count;
}

static double power(double complex a) {
    return creal(a * conj(a));
}

/* Returns how far a tone stands out of its surroundings, as a factor of power. */
static double prominence(const double *x, int64_t count, double hz, double rate) {
    const double bin = rate / (double)count;
    double around = 0;
    for (int k = 3; k < 7; k++)
        around += power(tone(x, count, hz - k * bin, rate)) + power(tone(x, count, hz + k * bin, rate));
    return power(tone(x, count, hz, rate)) * 8 / fmax(around, 1e-300);
}

/* Returns the frequency near `hz` where the tone is strongest. */
static double refine(const double *x, int64_t count, double hz, double rate) {
    double step = rate / (double)count / 2;
    for (int n = 0; n < 16; n++, step /= 2) {
        const double here = power(tone(x, count, hz, rate)), below = power(tone(x, count, hz - step, rate));
        const double above = power(tone(x, count, hz + step, rate));
        hz += below > here && below > above ? -step : above > here ? step : 0;
    }
    return hz;
}

/* Subtracts what the samples from `quiet` on show of offset and hum from all of them. */
static void remove_hum(work *w, int64_t quiet) {
    const int64_t count = w->frames - quiet;
    double mean = 0, variance = 0, best = 0, peak = 0;
    if ((double)count < shortest * w->rate)
        return;
    for (int64_t n = 0; n < w->frames; n++)
        peak = fmax(peak, fabs(w->x[n]));
    for (int64_t n = quiet; n < w->frames; n++)
        mean += w->x[n] / (double)count;
    for (int64_t n = quiet; n < w->frames; n++)
        variance += (w->x[n] - mean) * (w->x[n] - mean) / (double)count;
    if (mean * mean * (double)count > stands_out * variance) {
        w->c->offset = mean;
        for (int64_t n = 0; n < w->frames; n++)
            w->x[n] -= mean;
    }
    for (int base = 50; base <= 60; base += 10)
        for (int k = 1; k <= 5; k++) {
            const double out = prominence(w->x + quiet, count, base * k, w->rate);
            if (out > stands_out && out > best) {
                best = out;
                w->c->hum = refine(w->x + quiet, count, base * k, w->rate) / k;
            }
        }
    for (int k = 1; k <= HARMONICS && w->c->hum > 0 && k * w->c->hum < w->rate / 2; k++) {
        const double hz = k * w->c->hum, step = 2 * M_PI * hz / w->rate;
        const double complex a = tone(w->x + quiet, count, hz, w->rate);
        if (prominence(w->x + quiet, count, hz, w->rate) <= stands_out)
            continue;
        w->c->level += power(a);
        for (int64_t n = 0; n < w->frames; n++)
            w->x[n] -= creal(a * cexp(GC_J * step * (double)(n - quiet)));
    }
    w->c->level = w->c->hum > 0 ? 10 * log10(w->c->level / (peak * peak)) : 0;
}

/* ---- Noise ------------------------------------------------------------------------------------------------------- */

/* Returns the part of octave k, of `count`, at a frequency. Neighbours overlap in a third of an octave. */
static double mask_at(const gc_octave_band *band, int count, int k, double hz) {
    const double up = k ? 3 * log2(hz / band[k].low) + 0.5 : 1;
    const double down = k + 1 < count ? 3 * log2(hz / band[k + 1].low) + 0.5 : 0;
    const double in = fmin(1, fmax(0, up)), out = fmin(1, fmax(0, down));
    return (0.5 - 0.5 * cos(M_PI * in)) - (0.5 - 0.5 * cos(M_PI * out));
}

/* Cuts octave k out of `re`, in place. */
static bool cut_out(work *w, const gc_octave_band *band, int count, int k) {
    if (!gc_fourier(w->re, w->im, w->points, -1))
        return false;
    for (int64_t i = 0; i < w->points; i++) {
        const double hz = (double)gc_max(1, gc_min(i, w->points - i)) * w->rate / (double)w->points;
        const double mask = mask_at(band, count, k, hz) / (double)w->points;
        w->re[i] *= mask;
        w->im[i] *= mask;
    }
    return gc_fourier(w->re, w->im, w->points, 1);
}

/* Adds the difference that replacing an octave makes to `sum`: the decay goes on from frame `from` on, and meets the
 * noise at frame `cross`. */
static bool replace(work *w, const gc_octave_band *band, int count, int k, int64_t cross, bool silent) {
    const double fall = 3 * log(10) / (w->c->band[k].time * w->rate); /* nepers a frame */
    const int64_t from = (int64_t)(w->c->band[k].from * w->rate), fade = gc_max(1, (cross - from) / 3);
    uint64_t random = GC_SPLITMIX_STEP * (uint64_t)(k + 1);
    const int64_t near = (int64_t)(w->rate * fmax(2 / band[k].nominal, w->c->band[k].time / 40)) + 1;
    const double decade = log(10) / 2 / fall; /* frames for 10 dB */
    double noise = 0, level = 0, model = 0;
    memset(w->re, 0, 2 * (size_t)w->points * sizeof *w->re);
    memcpy(w->re, w->x, (size_t)w->frames * sizeof *w->re);
    if (!cut_out(w, band, count, k))
        return false;
    for (int64_t n = cross; n < w->frames; n++)
        noise += w->re[n] * w->re[n] / (double)(w->frames - cross);
    /* The level is that of 15 dB of the decay before `from` and 5 behind, in which the noise has little part. */
    for (int64_t n = gc_max(0, from - (int64_t)(1.5 * decade)); n < gc_min(cross, from + (int64_t)(0.5 * decade));
         n++) {
        level += w->re[n] * w->re[n] - noise;
        model += exp(-2 * fall * (double)(n - from));
    }
    level = model > 0 ? fmax(level, 0) / model : noise;
    for (int64_t n = from; n < w->total; n++) { /* the old samples fade out */
        const double part = fmin(1, (double)(n - from) / (double)fade);
        w->sum[n] += (cos(M_PI / 2 * part) - 1) * w->re[n];
    }
    if (silent)
        return true;
    memset(w->re, 0, 2 * (size_t)w->points * sizeof *w->re);
    for (int64_t n = 0; n < w->total; n++)
        w->re[n] = gc_random_uniform(&random);
    if (!cut_out(w, band, count, k))
        return false;
    /* The power around each frame is that of the decay, so that the decay time is, too. */
    double *power = w->im; /* of all frames before */
    power[0] = 0;
    for (int64_t n = 0; n < w->total; n++)
        power[n + 1] = power[n] + w->re[n] * w->re[n];
    for (int64_t n = from; n < w->total; n++) {
        const int64_t first = gc_max(0, n - near), last = gc_min(w->total, n + near);
        const double part = fmin(1, (double)(n - from) / (double)fade);
        const double gain = sqrt(level * (double)(last - first) / fmax(power[last] - power[first], 1e-300));
        w->sum[n] += sin(M_PI / 2 * part) * gain * exp(-fall * (double)(n - from)) * w->re[n];
    }
    return true;
}

/* Cleans the octaves of a channel. taps: the channel without hum and offset */
static bool clean_octaves(work *w, const float *taps, const gc_clean_options *o) {
    gc_octave_band band[GC_OCTAVE_BANDS];
    gc_channel *channel = gc_channel_new(taps, w->frames, w->rate, -1);
    bool good = channel != NULL;
    w->c->bands = gc_octave_bands(1, w->rate, band);
    w->c->from = (double)NAN;
    for (int k = 0; k < w->c->bands && good; k++) {
        gc_clean_band *b = &w->c->band[k];
        gc_acoustics a;
        int64_t cross;
        double noise;
        good = gc_channel_band(channel, &band[k], &a, NULL);
        if (!good)
            break;
        (void)gc_channel_densities(channel, &cross, &noise);
        const double time = isfinite(a.t30) ? a.t30 : a.fall;
        *b = (gc_clean_band){band[k].nominal, (double)NAN, time, a.inr};
        const double from = (double)cross / w->rate - time * MARGIN / 60;
        if (!(noise > 0 && a.inr < quiet_enough && time > 0 && from > (double)gc_channel_onset(channel) / w->rate &&
              cross < w->frames))
            continue;
        b->from = from;
        w->c->from = fmin(from, isnan(w->c->from) ? HUGE_VAL : w->c->from);
        good = replace(w, band, w->c->bands, k, cross, o->cut);
    }
    gc_channel_free(channel);
    return good;
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

static bool clean_channel(work *w, const float *from, const gc_clean_options *o, float *to) {
    gc_acoustics a;
    double noise;
    int64_t quiet = 0;
    memset(w->sum, 0, (size_t)w->points * sizeof *w->sum);
    memset(w->x, 0, (size_t)w->total * sizeof *w->x);
    for (int64_t n = 0; n < w->frames; n++)
        w->x[n] = (double)from[n];
    gc_channel *channel = gc_channel_new(from, w->frames, w->rate, -1);
    bool good = channel && gc_channel_band(channel, NULL, &a, NULL);
    if (good)
        (void)gc_channel_densities(channel, &quiet, &noise);
    gc_channel_free(channel);
    if (good && noise > 0)
        remove_hum(w, quiet);
    for (int64_t n = 0; n < w->frames; n++)
        to[n] = w->c->offset != 0 || w->c->hum > 0 ? (float)w->x[n] : from[n];
    good = good && clean_octaves(w, to, o);
    for (int64_t n = 0; n < w->total && good && !isnan(w->c->from); n++)
        if ((double)n >= w->c->from * w->rate)
            to[n] = (float)(w->x[n] + w->sum[n]);
    return good && !gc_cancelled();
}

gpuconv_status gc_clean(const gpuconv_ir *ir, const gc_clean_options *o, gpuconv_ir **cleaned,
                        gc_clean_channel **channels, gpuconv_error *error) {
    const int64_t total = o->seconds > 0 ? llround(o->seconds * ir->rate) : ir->frames;
    work w = {.rate = ir->rate, .frames = ir->frames, .total = total};
    w.points = gc_power_of_two(total + gc_max(2, (int64_t)ir->rate / 10)); /* masks ring */
    *cleaned = NULL;
    *channels = NULL;
    if (!(o->seconds <= 600 && total >= ir->frames))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a length is that of the response, %g s, to 600 s, not %g",
                       (double)ir->frames / ir->rate, o->seconds);
    gpuconv_ir *made = gc_ir_like(ir, w.total, ir->rate);
    gc_clean_channel *c = gc_calloc(ir->planes, (int64_t)sizeof *c);
    w.x = gc_calloc(w.total, sizeof *w.x);
    w.re = gc_calloc(w.points, 3 * (int64_t)sizeof *w.re);
    bool good = made && c && w.x && w.re;
    for (int k = 0; k < ir->planes && good; k++) {
        w.im = w.re + w.points;
        w.sum = w.im + w.points;
        w.c = &c[k];
        good = clean_channel(&w, gc_ir_plane(ir, k), o, made->taps + k * w.total);
    }
    free(w.x);
    free(w.re);
    if (good) {
        *channels = c;
        *cleaned = made;
        return GPUCONV_OK;
    }
    free(c);
    gpuconv_ir_free(made);
    return gc_fail_memory(error, "the cleaned response");
}

void gc_clean_report(const gc_clean_channel *c, int channels, gpuconv_report *report) {
    char label[32], list[32];
    for (int k = 0; k < channels; k++) {
        const gc_report_cell cells[] = {{"unchanged to s", NULL, c[k].from, false},
                                        {"offset", NULL, c[k].offset, false},
                                        {"hum Hz", NULL, c[k].hum > 0 ? c[k].hum : (double)NAN, false},
                                        {"hum dB", NULL, c[k].hum > 0 ? c[k].level : (double)NAN, false}};
        (void)snprintf(label, sizeof label, "channel %d", k + 1);
        gc_report_cells(report, "channels", label, 4, cells);
    }
    for (int k = 0; k < channels; k++)
        for (int b = 0; b < c[k].bands; b++) {
            const gc_clean_band *one = &c[k].band[b];
            const gc_report_cell cells[] = {{"INR dB", NULL, one->inr, false},
                                            {"decay s", NULL, one->time, false},
                                            {"replaced from s", NULL, one->from, false}};
            (void)snprintf(list, sizeof list, "channel %d", k + 1);
            (void)gc_format(label, sizeof label, "%g Hz", one->nominal);
            gc_report_cells(report, list, label, 3, cells);
        }
}
