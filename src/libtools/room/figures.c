/*
 * All figures of a response by channel and band: reverberation and clarity (acoustics.h), two-channel parameters
 * (interaural cross-correlation and lateral energy, ISO 3382-1:2009) and speech transmission (IEC 60268-16:2020); means
 * over several positions.
 */
#include "figures.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Two channels ------------------------------------------------------------------------------------------------ */

enum { EARLY, LATE, WINDOWS };

struct gc_ears {
    int64_t points;
    double rate;
    double *spectrum[WINDOWS][2][2]; /* window, ear, real or imaginary part: bins 0 .. points / 2 */
    double *re, *im;
    double *memory;
};

/* Transforms both ears in one window: left + i right, then separated by symmetry. */
static bool transform_window(gc_ears *e, const float *left, const float *right, int64_t from, int64_t to, int window) {
    int64_t half = e->points / 2;
    for (int64_t i = 0; i < e->points; i++) {
        bool inside = i + from < to;
        e->re[i] = inside ? (double)left[from + i] : 0;
        e->im[i] = inside ? (double)right[from + i] : 0;
    }
    if (!gc_fourier(e->re, e->im, e->points, -1))
        return false;
    for (int64_t k = 0; k <= half; k++) {
        int64_t m = (e->points - k) % e->points;
        e->spectrum[window][0][0][k] = (e->re[k] + e->re[m]) / 2;
        e->spectrum[window][0][1][k] = (e->im[k] - e->im[m]) / 2;
        e->spectrum[window][1][0][k] = (e->im[k] + e->im[m]) / 2;
        e->spectrum[window][1][1][k] = (e->re[m] - e->re[k]) / 2;
    }
    return true;
}

gc_ears *gc_ears_new(const float *left, const float *right, int64_t frames, double rate) {
    gc_ears *e = gc_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    /* Also a response of one frame has all lags up to 1 ms. */
    int64_t points = gc_power_of_two(gc_max(2 * frames, 2 * (int64_t)(0.001 * rate) + 2)), bins = points / 2 + 1;
    int64_t onset = gc_min(gc_channel_find_onset(left, frames), gc_channel_find_onset(right, frames));
    int64_t limit = gc_min(frames, onset + (int64_t)ceil(0.08 * rate - 1e-9));
    e->points = points;
    e->rate = rate;
    e->memory = gc_calloc(2 * points + 8 * bins, (int64_t)sizeof *e->memory);
    bool good = e->memory != NULL;
    if (good) {
        e->re = e->memory;
        e->im = e->re + points;
        for (int k = 0; k < 8; k++)
            e->spectrum[k / 4][k / 2 % 2][k % 2] = e->im + points + k * bins;
        good = transform_window(e, left, right, onset, limit, EARLY) &&
               transform_window(e, left, right, limit, frames, LATE);
    }
    if (!good) {
        gc_ears_free(e);
        return NULL;
    }
    return e;
}

void gc_ears_free(gc_ears *e) {
    if (!e)
        return;
    free(e->memory);
    free(e);
}

/* Returns the bin of one ear's window as a complex number. */
static double complex bin_of(const gc_ears *e, int window, int ear, int64_t k) {
    return e->spectrum[window][ear][0][k] + GC_J * e->spectrum[window][ear][1][k];
}

/* Returns the largest magnitude within 1 ms of lag 0, relative to the energies; NaN without energy. */
static double largest(const gc_ears *e, const double *correlation, const double energy[2]) {
    int64_t lags = (int64_t)(0.001 * e->rate);
    double most = 0, unit = sqrt(energy[0] * energy[1]);
    for (int64_t lag = -lags; lag <= lags; lag++)
        most = fmax(most, fabs(correlation[(lag + e->points) % e->points]));
    return energy[0] > 0 && energy[1] > 0 ? fmin(most / unit, 1) : (double)NAN;
}

/* Adds the energies of a window's ears in the band. */
static void add_energies(const gc_ears *e, int window, int64_t k, double weight, double energy[2]) {
    for (int ear = 0; ear < 2; ear++) {
        double complex x = bin_of(e, window, ear, k);
        energy[ear] += weight * (creal(x) * creal(x) + cimag(x) * cimag(x));
    }
}

/* The correlation of the whole response contains that of its windows with each other. The late window was transformed
 * from its own beginning, so its spectrum is delayed by `shift` frames here. */
static bool correlate_all(gc_ears *e, const gc_octave_band *band, int64_t shift, gc_interaural *r) {
    double energy[2] = {0, 0};
    for (int64_t k = 0; k <= e->points / 2; k++) {
        double hz = (double)k * e->rate / (double)e->points, turn = -2 * M_PI * (double)k;
        double complex h = band ? (k ? gc_octave_response(band, hz) : 0) : 1, delayed;
        double weight = (creal(h) * creal(h) + cimag(h) * cimag(h)) / (double)e->points;
        double complex ear[2];
        delayed = cexp(GC_J * turn * (double)shift / (double)e->points);
        for (int i = 0; i < 2; i++) {
            ear[i] = bin_of(e, EARLY, i, k) + delayed * bin_of(e, LATE, i, k);
            energy[i] += (k && k < e->points / 2 ? 2 : 1) * weight * pow(cabs(ear[i]), 2);
        }
        double complex cross = weight * conj(ear[0]) * ear[1];
        int64_t m = (e->points - k) % e->points;
        e->re[k] = e->re[m] = creal(cross);
        e->im[k] = cimag(cross);
        e->im[m] = k == m ? 0 : -cimag(cross);
    }
    if (!gc_fourier(e->re, e->im, e->points, 1))
        return false;
    r->all = largest(e, e->re, energy);
    return true;
}

bool gc_ears_band(gc_ears *e, const gc_octave_band *band, gc_interaural *r) {
    double energy[WINDOWS][2] = {{0}};
    int64_t half = e->points / 2;
    for (int64_t k = 0; k <= half; k++) {
        double hz = (double)k * e->rate / (double)e->points;
        double complex h = band ? (k ? gc_octave_response(band, hz) : 0) : 1;
        double weight = (creal(h) * creal(h) + cimag(h) * cimag(h)) / (double)e->points;
        double complex early = weight * conj(bin_of(e, EARLY, 0, k)) * bin_of(e, EARLY, 1, k);
        double complex late = weight * conj(bin_of(e, LATE, 0, k)) * bin_of(e, LATE, 1, k);
        for (int window = 0; window < WINDOWS; window++)
            add_energies(e, window, k, (k && k < half ? 2 : 1) * weight, energy[window]);
        int64_t m = (e->points - k) % e->points;
        e->re[k] = creal(early) - cimag(late); /* the spectrum of early + i late */
        e->im[k] = cimag(early) + creal(late);
        e->re[m] = creal(early) + cimag(late);
        e->im[m] = creal(late) - cimag(early);
    }
    if (gc_cancelled() || !gc_fourier(e->re, e->im, e->points, 1))
        return false;
    r->early = largest(e, e->re, energy[EARLY]);
    r->late = largest(e, e->im, energy[LATE]);
    return correlate_all(e, band, (int64_t)ceil(0.08 * e->rate - 1e-9), r);
}

double gc_lateral_fraction(const gc_channel *omni, const gc_channel *side) {
    const double *all = gc_channel_energies(omni), *sideways = gc_channel_energies(side);
    double early = all[GC_FROM_ONSET] - all[GC_FROM_80MS], lateral = sideways[GC_FROM_5MS] - sideways[GC_FROM_80MS];
    return early > 0 ? fmax(0, lateral) / early : (double)NAN;
}

/* ---- Speech ------------------------------------------------------------------------------------------------------ */

/* IEC 60268-16:2020, annex A: modulation frequencies in Hz, octave weights and redundancy corrections, level of male
 * speech relative to its A-weighted level, and reception threshold in dB. */
static const double modulation[GC_SPEECH_MODULATIONS] = {0.63, 0.8, 1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8, 10, 12.5};
static const double weight[GC_SPEECH_BANDS] = {0.085, 0.127, 0.230, 0.233, 0.309, 0.224, 0.173};
static const double redundancy[GC_SPEECH_BANDS - 1] = {0.085, 0.078, 0.065, 0.011, 0.047, 0.095};
static const double spectrum[GC_SPEECH_BANDS] = {-2.5, 0.5, 0, -6, -12, -18, -24};
static const double threshold[GC_SPEECH_BANDS] = {46, 27, 12, 6.5, 7.5, 8, 12};

static double power_of(double decibels) {
    return pow(10, decibels / 10);
}

/* Returns how strongly the octave below, at a level in dB, masks an octave, in dB relative to that level. */
static double masking(double level) {
    return level < 63 ? 0.5 * level - 65 : level < 67 ? 1.8 * level - 146.9 : level < 100 ? 0.5 * level - 59.8 : -10;
}

/* Writes the modulation transfer function of the energies e[0] .. e[n - 1]. @return false if they have no energy */
static bool transfer(const double *e, int64_t n, double noise, double rate, double m[GC_SPEECH_MODULATIONS]) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += e[i] - noise;
    for (int f = 0; f < GC_SPEECH_MODULATIONS; f++) {
        double re = 0, im = 0, step = 2 * M_PI * modulation[f] / rate, c = 1, s = 0, cs = cos(step), ss = sin(step);
        for (int64_t i = 0; i < n; i++) {
            re += (e[i] - noise) * c;
            im += (e[i] - noise) * s;
            double next = c * cs - s * ss;
            s = s * cs + c * ss;
            c = next;
        }
        m[f] = sum > 0 ? fmin(hypot(re, im) / sum, 1) : 0;
    }
    return sum > 0;
}

/* Returns the factor by which noise, masking and the threshold reduce the modulation of an octave. */
static double reduction(const gc_speech_levels *l, int band) {
    if (isnan(l->speech))
        return 1;
    double speech = power_of(l->speech + spectrum[band]);
    double noise = l->has_noise ? power_of(l->noise[band]) : 0, masked = 0;
    if (band > 0) {
        double below = power_of(l->speech + spectrum[band - 1]) + (l->has_noise ? power_of(l->noise[band - 1]) : 0);
        masked = below * power_of(masking(10 * log10(below)));
    }
    return speech / (speech + noise + masked + power_of(threshold[band]));
}

/* Returns the modulation transfer index: the mean transmission index of the modulation frequencies. */
static double transmission(const double m[GC_SPEECH_MODULATIONS], double factor) {
    double sum = 0;
    for (int f = 0; f < GC_SPEECH_MODULATIONS; f++) {
        double reduced = m[f] * factor, ratio = reduced < 1 ? 10 * log10(reduced / (1 - reduced)) : 15;
        sum += (fmin(fmax(ratio, -15), 15) + 15) / 30;
    }
    return sum / GC_SPEECH_MODULATIONS;
}

void gc_speech_band(const gc_channel *channel, double rate, int k, const gc_speech_levels *levels, gc_speech *r) {
    double m[GC_SPEECH_MODULATIONS], noise;
    int64_t count;
    const double *densities = gc_channel_densities(channel, &count, &noise);
    bool sounds = transfer(densities, count, noise, rate, m);
    r->mti[k] = sounds ? transmission(m, reduction(levels, k)) : (double)NAN;
}

void gc_speech_finish(gc_speech *r) {
    double sum = 0;
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        sum += weight[k] * r->mti[k];
        if (k > 0)
            sum -= redundancy[k - 1] * sqrt(r->mti[k - 1] * r->mti[k]);
    }
    r->sti = sum > 1 ? 1 : sum < 0 ? 0 : sum;
}

const char *gc_speech_rating(double sti) {
    return isnan(sti)   ? "-"
           : sti < 0.30 ? "bad"
           : sti < 0.45 ? "poor"
           : sti < 0.60 ? "fair"
           : sti < 0.75 ? "good"
                        : "excellent";
}

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

gc_figures_options gc_figures_default(void) {
    return (gc_figures_options){
        .per_octave = 1, .levels = {.speech = (double)NAN}, .reference_level = (double)NAN, .reference_distance = 10};
}

/* The bands of a file: the whole spectrum first. */
typedef struct band_list {
    gc_octave_band band[1 + GC_OCTAVE_BANDS];
    int count;
} band_list;

static const gc_octave_band *filter_of(const gc_octave_band *band) {
    return band->nominal > 0 ? band : NULL;
}

static band_list list_bands(const gc_figures_options *o, double rate) {
    band_list list = {.count = 1};
    list.band[0] = (gc_octave_band){0};
    if (o->per_octave)
        list.count += gc_octave_bands(o->per_octave, rate, list.band + 1);
    return list;
}

/* Computes the speech transmission index of a channel. */
static bool add_speech(gc_channel *c, double rate, const gc_figures_options *o, gc_speech *speech) {
    for (int k = 0; k < GC_SPEECH_BANDS; k++) {
        gc_octave_band band = gc_octave_of_speech(k);
        gc_acoustics unused;
        if (!(band.high < rate / 2))
            continue;
        if (!gc_channel_band(c, &band, &unused, NULL))
            return false;
        gc_speech_band(c, rate, k, &o->levels, speech);
    }
    gc_speech_finish(speech);
    return true;
}

/* Computes the parameters of one channel in every band. */
static bool add_channel(gc_figures *f, const band_list *list, const gc_figures_options *o, int channel, int64_t onset) {
    gc_channel *c = gc_channel_new(gc_ir_plane(f->ir, channel), f->ir->frames, f->ir->rate, onset);
    gc_speech *speech = &f->speech[channel];
    bool good = c != NULL;
    for (int k = 0; k < GC_SPEECH_BANDS; k++)
        speech->mti[k] = (double)NAN;
    for (int b = 0; b < list->count && good; b++) {
        gc_figure *figure = &f->figure[channel * f->bands + b];
        const double none = (double)NAN;
        *figure = (gc_figure){
            .channel = channel, .band = list->band[b], .strength = none, .lateral = none, .ears = {none, none, none}};
        good = gc_channel_band(c, filter_of(&list->band[b]), &figure->a, &f->decay[channel * f->bands + b]);
    }
    good = good && add_speech(c, f->ir->rate, o, speech);
    gc_channel_free(c);
    return good;
}

/* Computes the interaural correlation of a file with two channels. */
static bool add_ears(gc_figures *f, const band_list *list) {
    gc_ears *ears = gc_ears_new(gc_ir_plane(f->ir, 0), gc_ir_plane(f->ir, 1), f->ir->frames, f->ir->rate);
    bool good = ears != NULL;
    for (int b = 0; b < list->count && good; b++) {
        good = gc_ears_band(ears, filter_of(&list->band[b]), &f->figure[b].ears);
        f->figure[f->bands + b].ears = f->figure[b].ears;
    }
    gc_ears_free(ears);
    return good;
}

/* Computes the lateral energy fraction of channel 1, or of channel 2 if the figure-eight microphone is channel 1. */
static bool add_lateral(gc_figures *f, const band_list *list, int side) {
    int omni = side == 1 ? 1 : 0;
    gc_channel *a = gc_channel_new(gc_ir_plane(f->ir, omni), f->ir->frames, f->ir->rate, -1), *b = NULL;
    if (a)
        b = gc_channel_new(gc_ir_plane(f->ir, side - 1), f->ir->frames, f->ir->rate, gc_channel_onset(a));
    bool good = a && b;
    for (int k = 0; k < list->count && good; k++) {
        const gc_octave_band *band = filter_of(&list->band[k]);
        gc_acoustics unused;
        good = gc_channel_band(a, band, &unused, NULL) && gc_channel_band(b, band, &unused, NULL);
        if (good)
            f->figure[omni * f->bands + k].lateral = gc_lateral_fraction(a, b);
    }
    gc_channel_free(a);
    gc_channel_free(b);
    return good;
}

/* Computes the sound strength: ISO 3382-1:2009, A.2.1, from the level at 10 m in a free field. @param level of each
 * band of the reference */
static void add_strength(gc_figures *f, const double *level, double distance) {
    for (int c = 0; c < f->channels; c++)
        for (int b = 0; b < f->bands; b++) {
            gc_figure *figure = &f->figure[c * f->bands + b];
            double energy = figure->a.energy, ten_metres = level[b] + 20 * log10(distance / 10);
            figure->strength = energy > 0 ? 10 * log10(energy) - ten_metres : (double)NAN;
        }
}

/* Computes the level of the reference in each band. */
static gpuconv_status read_reference(const gc_figures_options *o, double rate, const band_list *list, double *level,
                                     gpuconv_error *error) {
    for (int b = 0; b < list->count; b++)
        level[b] = o->reference_level;
    if (!o->reference)
        return GPUCONV_OK;
    gpuconv_ir *ir = NULL;
    const gc_ir_form form = {GC_INPUT_REGULAR, NULL, o->file_rate};
    gpuconv_status status = gc_ir_load_from(o->reference, &form, &ir, error);
    if (!status && ir->rate != rate)
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a reference must have the response's rate, %g Hz, not %g Hz",
                    o->reference, rate, ir->rate);
    gc_channel *c = status ? NULL : gc_channel_new(gc_ir_plane(ir, 0), ir->frames, rate, -1);
    if (!status && !c)
        status = gc_fail_memory(error, o->reference);
    for (int b = 0; b < list->count && !status; b++) {
        gc_acoustics a;
        if (!gc_channel_band(c, filter_of(&list->band[b]), &a, NULL))
            status = gc_fail_memory(error, o->reference);
        else
            level[b] = a.energy > 0 ? 10 * log10(a.energy) : (double)NAN;
    }
    gc_channel_free(c);
    gpuconv_ir_free(ir);
    return status;
}

/* The loop over the channels. */
typedef struct channel_loop {
    gc_figures *f;
    const band_list *list;
    const gc_figures_options *options;
    int64_t onset; /* of the figure-eight channel */
    atomic_bool failed;
} channel_loop;

static void run_channel(void *context, int64_t c, int worker) {
    channel_loop *l = context;
    (void)worker;
    if (!add_channel(l->f, l->list, l->options, (int)c, c + 1 == l->options->lateral ? l->onset : -1))
        l->failed = true;
}

/* Computes the parameters of all channels on all cores. */
static bool add_channels(gc_figures *f, const band_list *list, const gc_figures_options *o, int64_t onset) {
    channel_loop loop = {.f = f, .list = list, .options = o, .onset = onset};
    gc_pool *pool = gc_pool_new((int)gc_min(gc_processor_count(), f->channels));
    if (!pool)
        return false;
    gc_pool_run(pool, run_channel, &loop, f->channels);
    gc_pool_free(pool);
    return !loop.failed && !gc_cancelled();
}

/* Allocates the figures and computes them. */
static gpuconv_status compute(gc_figures *f, const gc_figures_options *o, gpuconv_error *error) {
    band_list list = list_bands(o, f->ir->rate);
    double level[1 + GC_OCTAVE_BANDS] = {0};
    f->bands = list.count;
    f->figure = gc_calloc((int64_t)f->channels * f->bands, (int64_t)sizeof *f->figure);
    f->decay = gc_calloc((int64_t)f->channels * f->bands, (int64_t)sizeof *f->decay);
    f->speech = gc_calloc(f->channels, (int64_t)sizeof *f->speech);
    bool good = f->figure && f->decay && f->speech;
    int64_t onset = -1;
    if (good && o->lateral) { /* the figure-eight channel begins with the omnidirectional one, not at its own peak */
        gc_acoustics a;
        good = gc_acoustics_of(gc_ir_plane(f->ir, o->lateral == 1), f->ir->frames, f->ir->rate, 0, &a, NULL);
        onset = good ? llrint(a.onset * f->ir->rate) : -1;
    }
    good = good && add_channels(f, &list, o, onset);
    if (good && o->lateral)
        good = add_lateral(f, &list, o->lateral);
    else if (good && f->channels == 2)
        good = add_ears(f, &list);
    gpuconv_status status = good ? read_reference(o, f->ir->rate, &list, level, error) : gc_fail_memory(error, f->path);
    if (!status && (o->reference || !isnan(o->reference_level)))
        add_strength(f, level, o->reference_distance);
    return status;
}

/* Computes the figures of f->ir, and frees it after a failure. */
static gpuconv_status finish(gc_figures *f, const gc_figures_options *o, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    f->channels = f->ir->planes;
    if (o->lateral > f->channels || (o->lateral && f->channels < 2))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%s: the figure-eight channel %d needs as many channels and at least 2, not %d", f->path,
                         o->lateral, f->channels);
    if (!status)
        status = compute(f, o, error);
    if (status)
        gc_figures_free(f);
    return status;
}

gpuconv_status gc_figures_new(const char *path, const gc_figures_options *o, gc_figures *f, gpuconv_error *error) {
    *f = (gc_figures){.path = path};
    const gc_ir_form form = {GC_INPUT_REGULAR, o->raw, o->file_rate};
    gpuconv_status status = gc_ir_load_from(path, &form, &f->ir, error);
    return status ? status : finish(f, o, error);
}

gpuconv_status gc_figures_of(const gpuconv_ir *ir, const char *name, const gc_figures_options *o, gc_figures *f,
                             gpuconv_error *error) {
    *f = (gc_figures){.path = name, .ir = gc_ir_hold(ir)};
    return finish(f, o, error);
}

gpuconv_status gc_figures_prepared(const char *input, const char *path, const gpuconv_preparation *preparation,
                                   const gc_figures_options *o, gc_figures *f, gpuconv_error *error) {
    gc_reader *reader;
    *f = (gc_figures){.path = path};
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gpuconv_status status = gc_reader_open(input, &wish, &reader, error);
    if (status)
        return status;
    const gc_audio_info *info = gc_reader_info(reader);
    status = gpuconv_ir_prepare(path, preparation, info->channels, info->rate, &f->ir, error);
    gc_reader_free(reader);
    return status ? status : finish(f, o, error);
}

void gc_figures_shrink(gc_figures *f) {
    gpuconv_ir_free(f->ir);
    free(f->decay);
    f->ir = NULL;
    f->decay = NULL;
}

void gc_figures_free(gc_figures *f) {
    gc_figures_shrink(f);
    free(f->figure);
    free(f->speech);
    *f = (gc_figures){0};
}

const char *gc_doubt_text(unsigned doubt, char *text, size_t room) {
    static const char *const words[] = {"filter", "noise T20", "noise T30", "nonlinear",
                                        "curved", "end T20",   "end T30"};
    size_t used = 0;
    text[0] = '\0';
    if (doubt & GC_DOUBT_NOISE20) /* T30 is doubtful whenever T20 is */
        doubt &= ~(unsigned)GC_DOUBT_NOISE30;
    if (doubt & GC_DOUBT_END20)
        doubt &= ~(unsigned)GC_DOUBT_END30;
    for (size_t k = 0; k < sizeof words / sizeof *words && used < room; k++)
        if (doubt & 1U << k)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "; " : "", words[k]);
    return text;
}

/* ---- Positions --------------------------------------------------------------------------------------------------- */

const gc_quantity_info gc_quantity_about[GC_QUANTITIES] = {
    [GC_T20] = {"T20", "s", "reverberation time T20", 0.05, true},
    [GC_T30] = {"T30", "s", "reverberation time T30", 0.05, true},
    [GC_EDT] = {"EDT", "s", "early decay time EDT", 0.05, true},
    [GC_C80] = {"C80", "dB", "clarity C80", 1, false},
    [GC_D50] = {"D50", "%", "definition D50", 5, false},
    [GC_LEVEL] = {"level", "dB", "level of the response", 1, false},
    [GC_CENTRE] = {"Ts", "ms", "centre time Ts", 10, false},
};

double gc_quantity_of(const gc_figure *f, gc_quantity quantity) {
    const gc_acoustics *a = &f->a;
    switch (quantity) {
    case GC_T20:
        return a->t20;
    case GC_T30:
        return a->t30;
    case GC_EDT:
        return a->edt;
    case GC_C80:
        return a->c80;
    case GC_D50:
        return 100 * a->d50;
    case GC_CENTRE:
        return 1000 * a->centre;
    default:
        return !isnan(f->strength) ? f->strength : a->energy > 0 ? 10 * log10(a->energy) : (double)NAN;
    }
}

/* Returns the channels of a file that are positions. */
static int positions_of(const gc_positions *p, const gc_figures *f) {
    return f->channels - (p->lateral > 0);
}

int gc_positions_count(const gc_positions *p) {
    int count = 0;
    for (int i = 0; i < p->files; i++)
        count += positions_of(p, &p->figures[i]);
    return count;
}

const gc_figures *gc_positions_at(const gc_positions *p, int k, int *channel) {
    const gc_figures *f = p->figures;
    for (; k >= positions_of(p, f); f++)
        k -= positions_of(p, f);
    *channel = p->lateral && k >= p->lateral - 1 ? k + 1 : k;
    return f;
}

const gc_figures *gc_positions_widest(const gc_positions *p) {
    const gc_figures *widest = p->figures;
    for (int i = 1; i < p->files; i++)
        widest = p->figures[i].bands > widest->bands ? &p->figures[i] : widest;
    return widest;
}

void gc_mean_add(gc_mean *m, double value) {
    if (!isfinite(value))
        return;
    double off = value - m->mean; /* Welford 1962 */
    m->mean += off / ++m->count;
    m->deviation += off * (value - m->mean);
}

gc_mean gc_mean_finish(gc_mean m) {
    m.deviation = m.count > 1 ? sqrt(m.deviation / (m.count - 1)) : (double)NAN;
    m.mean = m.count ? m.mean : (double)NAN;
    return m;
}

gc_mean gc_positions_mean(const gc_positions *p, double nominal, gc_quantity quantity) {
    gc_mean m = {0};
    for (int i = 0; i < p->files; i++) {
        const gc_figures *f = &p->figures[i];
        for (int k = 0; k < f->channels * f->bands; k++)
            if (f->figure[k].band.nominal == nominal && f->figure[k].channel + 1 != p->lateral)
                gc_mean_add(&m, gc_quantity_of(&f->figure[k], quantity));
    }
    return gc_mean_finish(m);
}

/* Returns the mean over two neighbouring octaves, or the third-octaves in them. @param low the lower octave */
static double mean_of_octaves(const gc_figures *f, int channel, gc_quantity quantity, double low) {
    double sum = 0, octaves = 0;
    for (int b = 1; b < f->bands; b++) {
        const gc_figure *figure = gc_figure_at(f, channel, b);
        if (figure->band.centre < low / sqrt(2) || figure->band.centre > low * 2 * sqrt(2))
            continue;
        double width = log2(figure->band.high / figure->band.low);
        sum += width * gc_quantity_of(figure, quantity);
        octaves += width;
    }
    return octaves > 1.9 ? sum / octaves : (double)NAN;
}

double gc_mid_of(const gc_figures *f, int channel, gc_quantity quantity) {
    return mean_of_octaves(f, channel, quantity, 500);
}

double gc_bass_ratio(const gc_figures *f, int channel) {
    return mean_of_octaves(f, channel, GC_T30, 125) / mean_of_octaves(f, channel, GC_T30, 500);
}
