/*
 * From measured responses to filters that correct them.
 *
 * Analysis. All curves are on a grid of GC_CORRECTION_PER_OCTAVE frequencies an octave. The value at a frequency is the
 * Fourier transform of the response in a window around the direct sound whose length is a number of its cycles, so that
 * a low frequency has the room in it and a high one the direct sound (frequency-dependent window); without a window,
 * the mean over the bins of the whole response. The values are smoothed over fractions of an octave, and averaged over
 * the positions: as powers, or as complex numbers whose phase begins at the direct sound of each position.
 *
 * Gain. The filter inverts the averaged response up to the target, whose mean level in the range is that of the
 * responses. The inversion is regularised (Kirkeby et al., Fast deconvolution of multichannel systems using
 * regularization, IEEE Trans. Speech Audio 6 (1998), 189): C = T conj(H) / (|H|^2 + beta). beta is the least one, at
 * each frequency, with which |C| does not exceed the allowed gain: 0 nearly everywhere, so that the target is met
 * exactly where it may be. Beyond the range the gain goes back to that of the channel within half an octave.
 *
 * Phase. A filter of minimum phase has the phase that belongs to its magnitude (folded cepstrum), one of linear phase
 * has none but a delay of half its length. MIXED has in addition the negative excess phase of the response, which is
 * its phase without that of minimum phase and without a delay, up to a frequency, above which it fades out in an
 * octave. The share of it is halved in until the corrected response has no more pre-ringing than allowed at any
 * position.
 *
 * The prediction is what convolving with the finished filter gives, analysed as the measurement was.
 *
 * Matrices. H are the whole responses from loudspeakers to ears. The filters C = H* (H H* + beta)^-1, times the mean
 * level of the responses, give every ear its own signal alone; beta is the least one, at each frequency, with which no
 * filter has more than the allowed gain. Beyond the range as many loudspeakers as ears get their signals unchanged.
 * The filters are causal because they delay by a part of their length.
 */
#include "correct.h"

#include "acoustics.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/lines.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "sine_sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Curves of levels -------------------------------------------------------------------------------------------- */

/* A curve has the form of a calibration file: a straight line over the logarithm of the frequency between its points.
 */
typedef struct level_curve {
    const gc_microphone *points;
    gc_microphone *file; /* that owns them; NULL: one of the named curves */
} level_curve;

static const struct {
    const char *name;
    gc_microphone points;
} named_curves[] = {
    {"flat", {(double[]){1000}, (double[]){0}, 1, 0}},
    /* H. Moller, Relevant loudspeaker tests in studios (Bruel & Kjaer, 1974): optimum curve in a living room. */
    {"house", {(double[]){20, 200, 20000}, (double[]){0, 0, -6}, 3, 0}},
    /* SMPTE ST 202:2010, large rooms: flat from 63 Hz to 2 kHz, then 3 dB an octave, from 10 kHz on 6 dB. */
    {"x-curve", {(double[]){31.5, 50, 63, 2000, 10000, 20000}, (double[]){-3.5, -1, 0, 0, -6.97, -12.97}, 6, 0}},
};

static void curve_close(level_curve *c) {
    if (c)
        gc_microphones_free(c->file, 1);
    free(c);
}

/* Opens a curve of levels: flat, house, x-curve, or a file with lines of Hz and dB. The caller frees it
 * with curve_close. @return FILE, FORMAT, MEMORY, CANCELLED */
static gpuconv_status curve_open(const char *name, void (*note)(const char *), level_curve **curve,
                                 gpuconv_error *error) {
    level_curve *c = *curve = gc_calloc(1, (int64_t)sizeof *c);
    if (!c)
        return gc_fail_memory(error, name);
    for (size_t i = 0; i < sizeof named_curves / sizeof *named_curves; i++)
        if (strcmp(name, named_curves[i].name) == 0) {
            c->points = &named_curves[i].points;
            return GPUCONV_OK;
        }
    const char *const files[] = {name, NULL};
    const gpuconv_status status =
        gc_microphones_new(&(gc_microphone_files){.calibration = files, .note = note}, 1, &c->file, error);
    c->points = c->file;
    if (status) {
        curve_close(c);
        *curve = NULL;
    }
    return status;
}

/* Returns the level in dB at a frequency > 0. */
static double curve_at(const level_curve *c, double hz) {
    return gc_microphone_level(c->points, hz);
}

/* ---- Parametric equalisers --------------------------------------------------------------------------------------- */

enum { EQ_FILTERS = 256 };

/* The coefficients of a filter of second order; a[0] is 1. */
typedef struct eq_filter {
    double b[3], a[3];
} eq_filter;

/* A list of parametric equalisers. */
typedef struct eq_list {
    double gain; /* factor, of the preamplifier */
    int count;
    eq_filter filter[EQ_FILTERS];
} eq_list;

typedef enum eq_kind { PEAK, LOW_SHELF, HIGH_SHELF, LOW_PASS, HIGH_PASS, BAND_PASS, NOTCH, ALL_PASS } eq_kind;

static const struct {
    const char *name;
    eq_kind kind;
} eq_names[] = {{"PK", PEAK},       {"PEQ", PEAK},       {"LS", LOW_SHELF},   {"LSC", LOW_SHELF}, {"LSQ", LOW_SHELF},
                {"HS", HIGH_SHELF}, {"HSC", HIGH_SHELF}, {"HSQ", HIGH_SHELF}, {"LP", LOW_PASS},   {"LPQ", LOW_PASS},
                {"HP", HIGH_PASS},  {"HPQ", HIGH_PASS},  {"BP", BAND_PASS},   {"NO", NOTCH},      {"AP", ALL_PASS}};

/* A filter as a line of the list has it. */
typedef struct eq_line {
    eq_kind kind;
    double hz, gain, q; /* q: NaN if there is none */
} eq_line;

/* Computes the coefficients by the cookbook. */
static eq_filter design(const eq_line *l, double rate) {
    const double w = 2 * M_PI * l->hz / rate, c = cos(w), s = sin(w), a = pow(10, l->gain / 40), alpha = s / (2 * l->q);
    const double up = a + 1, down = a - 1, root = 2 * sqrt(a) * alpha;
    eq_filter f = {{0}, {1 + alpha, -2 * c, 1 - alpha}};
    switch (l->kind) {
    case PEAK:
        f = (eq_filter){{1 + alpha * a, -2 * c, 1 - alpha * a}, {1 + alpha / a, -2 * c, 1 - alpha / a}};
        break;
    case LOW_SHELF:
        f = (eq_filter){{a * (up - down * c + root), 2 * a * (down - up * c), a * (up - down * c - root)},
                        {up + down * c + root, -2 * (down + up * c), up + down * c - root}};
        break;
    case HIGH_SHELF:
        f = (eq_filter){{a * (up + down * c + root), -2 * a * (down + up * c), a * (up + down * c - root)},
                        {up - down * c + root, 2 * (down - up * c), up - down * c - root}};
        break;
    case LOW_PASS:
        memcpy(f.b, (double[]){(1 - c) / 2, 1 - c, (1 - c) / 2}, sizeof f.b);
        break;
    case HIGH_PASS:
        memcpy(f.b, (double[]){(1 + c) / 2, -1 - c, (1 + c) / 2}, sizeof f.b);
        break;
    case BAND_PASS:
        memcpy(f.b, (double[]){alpha, 0, -alpha}, sizeof f.b);
        break;
    case NOTCH:
        memcpy(f.b, (double[]){1, -2 * c, 1}, sizeof f.b);
        break;
    case ALL_PASS:
        memcpy(f.b, (double[]){1 - alpha, -2 * c, 1 + alpha}, sizeof f.b);
    }
    return f;
}

/* Finds "NAME VALUE" among the words from `first` on. @return false: it is there and no number */
static bool find_value(gc_table *t, int first, const char *name, double *value) {
    for (int i = first; i + 1 < t->fields; i++)
        if (gc_same_word(t->field[i], name))
            return gc_table_number(t, i + 1, value);
    return true;
}

/* Takes "ON PK Fc 105 Hz Gain -2.8 dB Q 1.41", from word `first` on. @return FORMAT */
static gpuconv_status take_filter(gc_table *t, int first, double rate, eq_list *eq, gpuconv_error *error) {
    eq_line l = {.hz = (double)NAN, .q = (double)NAN};
    double width = (double)NAN;
    size_t k = 0;
    if (first >= t->fields || gc_same_word(t->field[first], "OFF"))
        return GPUCONV_OK;
    if (!gc_same_word(t->field[first], "ON") || first + 1 == t->fields)
        return gc_table_fail(t, error, "is neither \"ON\" with a filter nor \"OFF\"");
    if (gc_same_word(t->field[first + 1], "None"))
        return GPUCONV_OK;
    while (k < sizeof eq_names / sizeof *eq_names && !gc_same_word(t->field[first + 1], eq_names[k].name))
        k++;
    if (k == sizeof eq_names / sizeof *eq_names)
        return gc_table_fail(t, error, "has no filter that is known here: PK, LSC, HSC, LP, HP, BP, NO and AP are");
    l.kind = eq_names[k].kind;
    if (!find_value(t, first + 2, "Fc", &l.hz) || !find_value(t, first + 2, "Gain", &l.gain) ||
        !find_value(t, first + 2, "Q", &l.q) || !find_value(t, first + 2, "Oct", &width))
        return gc_table_fail(t, error, "has a value that is no number");
    if (width > 0) /* octaves between the points of half the gain */
        l.q = 1 / (2 * sinh(log(2) / 2 * width));
    if (isnan(l.q) && (l.kind == LOW_PASS || l.kind == HIGH_PASS))
        l.q = sqrt(0.5);
    if (!(l.hz > 0 && l.hz < rate / 2 && fabs(l.gain) <= 60 && l.q >= 0.01 && l.q <= 1000))
        return gc_table_fail(t, error,
                             "needs \"Fc\" in Hz below half of the rate, %.0f Hz, \"Gain\" from -60 to 60 dB, and "
                             "\"Q\" from 0.01 to 1000 or \"BW Oct\"",
                             rate / 2);
    if (eq->count == EQ_FILTERS)
        return gc_table_fail(t, error, "is one of more than %d filters", EQ_FILTERS);
    eq->filter[eq->count++] = design(&l, rate);
    return GPUCONV_OK;
}

/* Takes a line. Those before the first filter that begin with other words are the heading of REW.
 * @return FORMAT */
static gpuconv_status take_line(gc_table *t, double rate, eq_list *eq, bool *begun, gpuconv_error *error) {
    double db;
    int first = 1;
    if (gc_begins_with(t->field[0], "Preamp:")) {
        if (t->fields < 2 || !gc_table_number(t, 1, &db) || fabs(db) > 120)
            return gc_table_fail(t, error, "is no level from -120 to 120 dB");
        eq->gain *= pow(10, db / 20);
        *begun = true;
        return GPUCONV_OK;
    }
    if (!gc_begins_with(t->field[0], "Filter") || (t->fields > 1 && gc_same_word(t->field[1], "Settings")))
        return *begun ? gc_table_fail(t, error, "is no line of \"Preamp:\" or \"Filter\", which alone are read")
                      : GPUCONV_OK;
    *begun = true;
    if (!strchr(t->field[0], ':')) /* "Filter 1:" */
        first++;
    return take_filter(t, first, rate, eq, error);
}

/* Reads a list as Equalizer APO, AutoEq and REW write it: lines of "Preamp: -6 dB" and "Filter 1: ON PK Fc 105 Hz Gain
 * -2.8 dB Q 1.41"; the filters are those of R. Bristow-Johnson, Cookbook formulae for audio EQ biquad filter
 * coefficients. @param rate at which they are computed @return FILE, FORMAT, MEMORY, CANCELLED */
static gpuconv_status eq_read(const char *path, double rate, eq_list *eq, gpuconv_error *error) {
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 32, .comments = true};
    gc_lines lines;
    gc_table table = {0};
    bool begun = false;
    *eq = (eq_list){.gain = 1};
    gpuconv_status status = gc_lines_open(&lines, path, GC_TEXT_LONGEST, GC_TEXT_MOST, error);
    if (!status)
        status = gc_table_open(&table, &form, &lines, error);
    while (gc_table_next(&table, &status, error))
        status = take_line(&table, rate, eq, &begun, error);
    gc_table_close(&table);
    gc_lines_close(&lines);
    if (!status && !begun)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has no line of \"Preamp:\" or \"Filter\"", path);
    return status;
}

/* Returns the response of the list at a frequency. */
static double complex eq_at(const eq_list *eq, double rate, double hz) {
    const double complex z = cexp(-GC_J * 2 * M_PI * hz / rate);
    double complex product = eq->gain;
    for (int i = 0; i < eq->count; i++) {
        const eq_filter *f = &eq->filter[i];
        product *= (f->b[0] + z * (f->b[1] + z * f->b[2])) / (f->a[0] + z * (f->a[1] + z * f->a[2]));
    }
    return product;
}

/* ---- Crossovers -------------------------------------------------------------------------------------------------- */

bool gc_crossover_parse(const char *text, gc_crossover *c) {
    static const struct {
        const char *name;
        int order;
        bool bessel;
    } kinds[] = {{"lr2:", 2, false},    {"lr4:", 4, false},    {"lr8:", 8, false},
                 {"bessel2:", 2, true}, {"bessel4:", 4, true}, {"bessel8:", 8, true}};
    *c = (gc_crossover){0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strncmp(text, kinds[k].name, strlen(kinds[k].name)) == 0) {
            c->order = kinds[k].order;
            c->bessel = kinds[k].bessel;
            text += strlen(kinds[k].name);
        }
    if (c->order)
        c->count = gc_numbers_parse(text, ",", c->hz, GC_CROSSOVERS);
    for (int i = 0; i < c->count; i++)
        if (!(c->hz[i] >= 1 && c->hz[i] <= 5e5 && (i == 0 || c->hz[i] > c->hz[i - 1])))
            return false;
    return c->count > 0;
}

/* Returns the polynomial of a Butterworth lowpass at s, of order 1, 2 or 4. */
static double complex butterworth(int order, double complex s) {
    return order == 1   ? s + 1
           : order == 2 ? s * s + sqrt(2) * s + 1
                        : (s * s + 2 * cos(M_PI / 8) * s + 1) * (s * s + 2 * sin(M_PI / 8) * s + 1);
}

/* Returns the lowpass of a Bessel filter at s, as a reverse Bessel polynomial, with -3 dB at s = i. */
static double complex bessel(int order, double complex s) {
    const double scale = order == 2 ? 1.361654 : order == 4 ? 2.113918 : 3.179617; /* -3 dB of the polynomial's own */
    double complex before = 1, now = 1 + scale * s;
    double zero = 1;
    for (int n = 2; n <= order; n++) {
        const double complex next = (2 * n - 1) * now + scale * s * scale * s * before;
        before = now;
        now = next;
        zero *= 2 * n - 1;
    }
    return zero / now;
}

/* Returns the lowpass or the highpass of crossover i, by the bilinear transform. */
static double complex half(const gc_crossover *c, int i, bool high, double rate, double hz) {
    const double complex s = GC_J * tan(M_PI * fmin(hz / rate, 0.5)) / tan(M_PI * c->hz[i] / rate);
    if (c->bessel)
        return bessel(c->order, high ? 1 / s : s);
    const double complex b = butterworth(c->order / 2, s);
    return (high ? cpow(s, c->order) : 1) / (b * b);
}

/* Returns the response of way `way`, from 0 for the lowest on. The ways of Linkwitz-Riley crossovers add up to an
 * all-pass filter, in which the lower ways have the phase of the crossovers above them; every second way of lr2 is
 * inverted for it. Their magnitudes add up to 1. rate: above twice the highest crossover. */
static double complex crossover_at(const gc_crossover *c, int way, double rate, double hz) {
    const bool inverts = c->order == 2 && !c->bessel;
    double complex product = inverts && way % 2 ? -1 : 1;
    for (int i = 0; i < c->count; i++)
        if (i < way)
            product *= half(c, i, true, rate, hz);
        else if (i == way)
            product *= half(c, i, false, rate, hz);
        else if (!c->bessel) /* the all-pass filter that the ways above have */
            product *= half(c, i, false, rate, hz) + (inverts ? -1 : 1) * half(c, i, true, rate, hz);
    return product;
}

/* ---- The grid ---------------------------------------------------------------------------------------------------- */

enum { PER_OCTAVE = GC_CORRECTION_PER_OCTAVE, POINTS = GC_CORRECTION_POINTS, HALVINGS = 6 };

static const double lowest = 5 /* Hz, of the grid */, no_level = -300 /* dB */, usable = 10 /* dB above the noise */,
                    noise_cycles = 5 /* half of the windows in which noise is looked for */;

/* The values of a response on the grid. */
typedef struct values {
    double complex h[POINTS]; /* phase from the direct sound on */
    double power[POINTS];
} values;

/* A correction in the making. */
typedef struct work {
    const gc_correction_options *o;
    gc_correction *c;
    gpuconv_ir **measured; /* a position each */
    int64_t *onset;        /* positions x channels, frames until the direct sound */
    values *mean;          /* a channel each: of the measured responses, without smoothing of the phase */
    double common;         /* dB: mean level of the channels */
    double *excess;        /* of the channel that is being made: radians on the grid */
    eq_list eq;
    int64_t frames, points; /* of a filter, and of its transforms */
    double *re, *im;        /* `points` each */
} work;

static double decibels(double power) {
    return power > 0 ? fmax(no_level, 10 * log10(power)) : no_level;
}

/* ---- Measurements ------------------------------------------------------------------------------------------------ */

/* Refuses a channel without a direct sound. */
static gpuconv_status check_direct_sound(const char *path, const gpuconv_ir *ir, int channel, gpuconv_error *error) {
    const float *x = gc_ir_plane(ir, channel);
    const int64_t span = (int64_t)(0.02 * ir->rate);
    double loudest = 0, sum = 0;
    for (int64_t i = 0, at = 0; i < ir->frames; i = at) {
        double energy = 0;
        for (at = i; at < ir->frames && at < i + span; at++)
            energy += (double)x[at] * (double)x[at];
        loudest = fmax(loudest, energy);
        sum += energy;
    }
    if (loudest > 0 && ((double)ir->frames < 0.4 * ir->rate || loudest * (double)ir->frames > 4 * sum * (double)span))
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_FORMAT,
                   "%s: channel %d has no direct sound: its loudest 20 ms are %.1f dB above the mean; a response is "
                   "needed, as gpuconv ir measure computes it from a sweep",
                   path, channel + 1, loudest > 0 ? decibels(loudest * (double)ir->frames / sum / (double)span) : 0);
}

/* Reads the file of a position. */
static gpuconv_status read_position(work *w, int position, gpuconv_error *error) {
    const char *path = w->o->measured[position], *first = w->o->measured[0];
    const gc_ir_form form = {GC_INPUT_REGULAR, w->o->raw, w->o->file_rate};
    gpuconv_status status = gc_ir_load_from(path, &form, &w->measured[position], error);
    const gpuconv_ir *ir = w->measured[position], *one = w->measured[0];
    if (status)
        return status;
    if (ir->rate != one->rate || ir->planes != one->planes || ir->frames != one->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s has %d channels of %lld frames at %g Hz, but %s has %d of %lld at %g Hz; the positions of "
                       "one measurement are alike",
                       path, ir->planes, (long long)ir->frames, ir->rate, first, one->planes, (long long)one->frames,
                       one->rate);
    return GPUCONV_OK;
}

/* Reads all files and finds their direct sounds. */
static gpuconv_status read_measurements(work *w, gpuconv_error *error) {
    const int positions = w->o->files;
    gc_correction *c = w->c;
    w->measured = gc_calloc(positions + 1, (int64_t)sizeof(gpuconv_ir *));
    gpuconv_status status = w->measured ? GPUCONV_OK : gc_fail_memory(error, "the responses");
    for (int p = 0; p < positions && !status; p++)
        status = read_position(w, p, error);
    if (status)
        return status;
    c->positions = positions;
    c->channels = positions ? w->measured[0]->planes : 1;
    c->rate = positions ? w->measured[0]->rate : w->o->rate > 0 ? w->o->rate : 48000;
    c->low = w->o->low;
    c->high = w->o->high > 0 ? w->o->high : fmin(20000, 0.45 * c->rate);
    if (!(c->low >= lowest && c->high > 2 * c->low && c->high <= c->rate / 2))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the range is %g to %g Hz; use %g Hz to half of the rate, %g Hz, and at least an octave", c->low,
                       c->high, lowest, c->rate / 2);
    w->onset = gc_calloc((int64_t)(positions + 1) * c->channels, sizeof *w->onset);
    w->mean = gc_calloc(c->channels, (int64_t)sizeof *w->mean);
    c->channel = gc_calloc(c->channels, (int64_t)sizeof *c->channel);
    if (!w->onset || !w->mean || !c->channel)
        return gc_fail_memory(error, "the responses");
    for (int p = 0; p < positions; p++)
        for (int k = 0; k < c->channels && !status; k++) {
            status = w->o->matrix ? status : check_direct_sound(w->o->measured[p], w->measured[p], k, error);
            w->onset[p * c->channels + k] =
                gc_channel_find_onset(gc_ir_plane(w->measured[p], k), w->measured[p]->frames);
        }
    return status;
}

/* ---- Analysis ---------------------------------------------------------------------------------------------------- */

/* Returns the Fourier transform of a response at `step` radians a frame, in a Hann window of `half` frames before and
 * behind a frame, where the phase is 0. */
static double complex window_at(const double *x, int64_t frames, int64_t centre, double half, double step) {
    const int64_t from = gc_max(0, centre - (int64_t)half), to = gc_min(frames, centre + (int64_t)half + 1);
    const double complex turn = cexp(-GC_J * step), open = cexp(GC_J * M_PI / half);
    double complex phase = cexp(-GC_J * step * (double)(from - centre)), sum = 0;
    double complex window = cexp(GC_J * M_PI * (double)(from - centre) / half);
    for (int64_t n = from; n < to; n++) {
        sum += x[n] * (0.5 + 0.5 * creal(window)) * phase;
        phase *= turn;
        window *= open;
    }
    return sum;
}

/* Refuses a response whose end, which is noise or a decay that was cut off, is too loud in an octave of the range. An
 * octave whose windows at the direct sound and at the end meet is not judged. */
static gpuconv_status check_noise(const work *w, int position, int channel, const double *x, gpuconv_error *error) {
    const gc_correction *c = w->c;
    const int64_t frames = w->measured[0]->frames, onset = w->onset[position * c->channels + channel];
    double direct = 0, end = 0;
    for (int k = 0; k < c->points; k++) {
        const double half = noise_cycles * c->rate / c->hz[k], step = 2 * M_PI * c->hz[k] / c->rate;
        if (c->hz[k] < c->low || c->hz[k] > c->high || (double)onset + 3 * half > (double)frames)
            continue;
        direct += pow(cabs(window_at(x, frames, onset, half, step)), 2);
        end += pow(cabs(window_at(x, frames, frames - 1 - (int64_t)half, half, step)), 2);
        if ((k + 1) % PER_OCTAVE)
            continue;
        if (end > 0 && decibels(direct / end) < usable)
            return gc_fail(
                error, GPUCONV_ERROR_FORMAT,
                "%s: channel %d: from %.3g to %.3g Hz the end of the response is only %.1f dB below the direct "
                "sound, and a correction needs %g; measure with a longer or louder sweep, or correct another "
                "range",
                w->o->measured[position], channel + 1, c->hz[k] / 2, c->hz[k], decibels(direct / end), usable);
        direct = end = 0;
    }
    return GPUCONV_OK;
}

/* Transforms a response in windows around the direct sound. */
static void analyse_windows(const double *x, int64_t frames, int64_t onset, const work *w, values *v) {
    for (int k = 0; k < w->c->points && !gc_cancelled(); k++) {
        const double half = w->o->window * w->c->rate / w->c->hz[k];
        v->h[k] = window_at(x, frames, onset, half, 2 * M_PI * w->c->hz[k] / w->c->rate);
        v->power[k] = creal(v->h[k] * conj(v->h[k]));
    }
}

/* Transforms a whole response, and averages the bins around each frequency. @return false as gc_fourier */
static bool analyse_whole(const double *x, int64_t frames, int64_t onset, const work *w, values *v) {
    const int64_t points = gc_power_of_two(gc_max(2 * frames, (int64_t)w->c->rate));
    double *re = gc_calloc(points, 2 * (int64_t)sizeof *re), *im = re ? re + points : NULL;
    if (!re)
        return false;
    for (int64_t n = 0; n < frames; n++)
        re[((n - onset) % points + points) % points] = x[n];
    const bool good = gc_fourier(re, im, points, -1);
    const double bin = w->c->rate / (double)points, half = exp2(0.5 / PER_OCTAVE);
    for (int k = 0; k < w->c->points && good; k++) {
        const int64_t nearest = llround(w->c->hz[k] / bin);
        const int64_t from = gc_min(nearest, (int64_t)ceil(w->c->hz[k] / half / bin));
        const int64_t to = gc_min(points / 2, gc_max(nearest, (int64_t)floor(w->c->hz[k] * half / bin)));
        double complex sum = 0;
        double power = 0;
        for (int64_t i = from; i <= to; i++) {
            sum += re[i] + GC_J * im[i];
            power += re[i] * re[i] + im[i] * im[i];
        }
        v->h[k] = sum / (double)(to - from + 1);
        v->power[k] = power / (double)(to - from + 1);
    }
    free(re);
    return good;
}

/* Averages over the smoothed width, at each frequency. */
static void smooth(const work *w, values *v) {
    const int half = w->o->smoothing > 0 ? (int)(PER_OCTAVE / w->o->smoothing / 2) : 0, points = w->c->points;
    values *from = gc_alloc(1, (int64_t)sizeof *from);
    if (!from)
        return; /* not smoothed; a later allocation fails too */
    *from = *v;
    for (int k = 0; k < points; k++) {
        double complex sum = 0;
        double power = 0;
        const int first = (int)gc_max(0, k - half), last = (int)gc_min(points - 1, k + half);
        for (int i = first; i <= last; i++) {
            sum += from->h[i];
            power += from->power[i];
        }
        sum /= last - first + 1;
        v->power[k] = w->o->complex_mean ? creal(sum * conj(sum)) : power / (last - first + 1);
        if (w->o->complex_mean)
            v->h[k] = sum;
    }
    free(from);
}

/* Averages the responses of a channel over the positions. x(p): `frames` samples from `signal` + p * frames on, whose
 * direct sound is `later` frames behind that of the measurement. */
static bool average(const work *w, int channel, const double *signal, int64_t frames, int64_t later, values *mean) {
    const int positions = w->c->positions;
    values *one = gc_calloc(1, (int64_t)sizeof *one);
    bool good = one != NULL;
    memset(mean, 0, sizeof *mean);
    for (int p = 0; p < positions && good; p++) {
        const double *x = signal + p * frames;
        const int64_t onset = w->onset[p * w->c->channels + channel] + later;
        if (w->o->window > 0)
            analyse_windows(x, frames, onset, w, one);
        else
            good = analyse_whole(x, frames, onset, w, one);
        smooth(w, one);
        for (int k = 0; k < w->c->points; k++) {
            mean->h[k] += one->h[k] / positions;
            mean->power[k] += one->power[k] / positions;
        }
    }
    for (int k = 0; k < w->c->points && w->o->vector_mean; k++)
        mean->power[k] = creal(mean->h[k] * conj(mean->h[k]));
    free(one);
    return good && !gc_cancelled();
}

/* Returns the samples of a channel at all positions, to be freed. NULL: out of memory. */
static double *gather(const work *w, int channel) {
    const int64_t frames = w->c->positions ? w->measured[0]->frames : 0;
    double *x = gc_calloc(gc_max(1, frames * w->c->positions), sizeof *x);
    for (int p = 0; x && p < w->c->positions; p++)
        for (int64_t n = 0; n < frames; n++)
            x[p * frames + n] = (double)gc_ir_plane(w->measured[p], channel)[n];
    return x;
}

/* Returns the mean of a curve in dB over the range. */
static double level_of(const gc_correction *c, const double *curve) {
    double sum = 0;
    int count = 0;
    for (int k = 0; k < c->points; k++)
        if (c->hz[k] >= c->low && c->hz[k] <= c->high) {
            sum += curve[k];
            count++;
        }
    return sum / count;
}

/* Analyses all channels, and sets levels and delays. */
static gpuconv_status analyse(work *w, gpuconv_error *error) {
    gc_correction *c = w->c;
    double earliest = HUGE_VAL, latest = 0;
    double arrival[GC_MAX_CHANNELS] = {0};
    for (int k = 0; k < c->channels; k++) {
        const int64_t frames = c->positions ? w->measured[0]->frames : 0;
        double *x = gather(w, k);
        gpuconv_status status = x ? GPUCONV_OK : gc_fail_memory(error, "the responses");
        for (int p = 0; p < c->positions && !status; p++)
            status = check_noise(w, p, k, x + p * frames, error);
        if (!status && !average(w, k, x, frames, 0, &w->mean[k]))
            status = gc_fail_memory(error, "the responses");
        free(x);
        if (status)
            return status;
        for (int i = 0; i < c->points; i++)
            c->channel[k].before[i] = c->positions ? decibels(w->mean[k].power[i]) : 0;
        c->channel[k].level = level_of(c, c->channel[k].before);
        w->common += c->channel[k].level / c->channels;
        for (int p = 0; p < c->positions; p++)
            arrival[k] += (double)w->onset[p * c->channels + k] / c->positions;
        earliest = fmin(earliest, arrival[k]);
        latest = fmax(latest, arrival[k]);
    }
    for (int k = 0; k < c->channels; k++) {
        for (int i = 0; i < c->points; i++)
            c->channel[k].before[i] -= w->common;
        c->channel[k].level -= w->common;
        c->channel[k].delay = w->o->align ? llround(latest - arrival[k]) : 0;
    }
    if (w->o->align && (double)w->frames < 2 * (latest - earliest))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "the direct sounds of the channels are %.1f ms apart, which a filter of %.1f ms cannot delay; use "
            "--no-align, or a longer one",
            1e3 * (latest - earliest) / c->rate, 1e3 * (double)w->frames / c->rate);
    return GPUCONV_OK;
}

/* ---- Gain -------------------------------------------------------------------------------------------------------- */

/* Fills the grid, the target and the most gain. */
static gpuconv_status fill_curves(work *w, gpuconv_error *error) {
    gc_correction *c = w->c;
    level_curve *target = NULL, *limit = NULL;
    gpuconv_status status = curve_open(w->o->target ? w->o->target : "flat", w->o->note, &target, error);
    if (!status && w->o->limit_curve)
        status = curve_open(w->o->limit_curve, w->o->note, &limit, error);
    while (!status && c->points < POINTS && lowest * exp2((double)c->points / PER_OCTAVE) < c->rate / 2) {
        const int k = c->points++;
        c->hz[k] = lowest * exp2((double)k / PER_OCTAVE);
        c->target[k] = curve_at(target, c->hz[k]);
        c->limit[k] = limit ? fmin(60, fmax(0, curve_at(limit, c->hz[k]))) : w->o->limit;
    }
    curve_close(target);
    curve_close(limit);
    if (!status && c->positions) {
        const double level = level_of(c, c->target);
        for (int k = 0; k < c->points; k++)
            c->target[k] -= level;
    }
    return status;
}

/* Returns how much of the correction is left at a frequency: 1 in the range, 0 half an octave beyond it. */
static double share_at(double low, double high, double hz) {
    const double beyond = 2 * fmax(log2(low / hz), log2(hz / high));
    return beyond <= 0 ? 1 : beyond >= 1 ? 0 : 0.5 + 0.5 * cos(M_PI * beyond);
}

/* Inverts the response of a channel, without equalisers. The filter's part of aligning the level is not limited. */
static void invert(const work *w, gc_corrected *k) {
    const gc_correction *c = w->c;
    k->own_level = w->o->align ? 0 : k->level;
    k->limit_level = k->own_level - k->level;
    for (int i = 0; i < c->points; i++) {
        const double share = share_at(c->low, c->high, c->hz[i]), most = c->limit[i] + k->limit_level;
        const double inverse = c->target[i] + k->own_level - k->before[i];
        const double wanted = k->limit_level + share * (inverse - k->limit_level);
        /* |H| / (|H|^2 + beta) = 10^(most / 20) where more is wanted, so that beta > 0 */
        k->limited[i] = c->positions && wanted > most;
        k->gain[i] = k->limited[i] ? most : wanted;
    }
}

/* ---- Phase and filter -------------------------------------------------------------------------------------------- */

/* Returns a curve of the grid at a frequency. */
static double at(const gc_correction *c, const double *curve, double hz) {
    const double place = fmax(0, PER_OCTAVE * log2(fmax(hz, 1e-3) / lowest));
    const int k = (int)fmin(place, c->points - 2);
    const double part = fmin(1, place - k);
    return curve[k] + part * (curve[k + 1] - curve[k]);
}

/* Fills re and im with the logarithm of a magnitude of minimum phase. */
static bool fill_minimum(work *w, const double *curve, bool linear) {
    const double bin = w->c->rate / (double)w->points;
    for (int64_t k = 0; k <= w->points / 2; k++)
        w->re[k] = w->re[(w->points - k) % w->points] = log(10) / 20 * at(w->c, curve, (double)k * bin);
    memset(w->im, 0, (size_t)w->points * sizeof *w->im);
    return linear || gc_fourier_minimum_phase(w->re, w->im, w->points);
}

/* Returns the delay in radians per Hz that fits a phase best in the range up to `excess_to`. */
static double delay_of(const work *w, const double *phase) {
    double sum = 0, squares = 0;
    for (int k = 0; k < w->c->points; k++)
        if (w->c->hz[k] >= w->c->low && w->c->hz[k] <= fmax(w->o->excess_to, 2 * w->c->low)) {
            sum += phase[k] * w->c->hz[k];
            squares += w->c->hz[k] * w->c->hz[k];
        }
    return sum / squares;
}

/* Fills the excess phase of a channel on the grid: continuous, without whole half turns at the lower end of the range,
 * which are the polarity, and without the delay that fits it best. */
static bool fill_excess(work *w, int channel) {
    const gc_correction *c = w->c;
    const double bin = c->rate / (double)w->points;
    double last = 0, base = 0;
    if (!fill_minimum(w, c->channel[channel].before, false))
        return false;
    for (int k = 0; k < c->points; k++) {
        const double place = c->hz[k] / bin;
        const int64_t i = gc_min((int64_t)place, w->points / 2 - 1);
        const double minimal = w->im[i] + (place - (double)i) * (w->im[i + 1] - w->im[i]);
        const double phase = carg(w->mean[channel].h[k] * cexp(-GC_J * minimal));
        w->excess[k] = last = phase + (k ? 2 * M_PI * rint((last - phase) / (2 * M_PI)) : 0);
        if (c->hz[k] <= c->low)
            base = M_PI * rint(last / M_PI);
    }
    for (int k = 0; k < c->points; k++)
        w->excess[k] -= base;
    const double delay = delay_of(w, w->excess);
    for (int k = 0; k < c->points; k++)
        w->excess[k] -= delay * c->hz[k];
    return true;
}

/* Returns the share of the excess phase that is corrected at a frequency: 1 in the range up to excess_to, 0 an octave
 * above it. */
static double excess_share(const work *w, double hz) {
    const double beyond = log2(hz / w->o->excess_to);
    return share_at(w->c->low, HUGE_VAL, hz) * (beyond <= 0 ? 1 : beyond >= 1 ? 0 : 0.5 + 0.5 * cos(M_PI * beyond));
}

/* Transforms the spectrum in w->re and w->im back to `frames` samples, whose time zero is at frame `zero`, and fades
 * both ends. */
static bool cut_filter(work *w, int64_t zero, float *filter) {
    if (!gc_fourier(w->re, w->im, w->points, 1))
        return false;
    const int64_t rise = w->c->lead / 2, fall = (w->frames - w->c->lead) / 4;
    for (int64_t n = 0; n < w->frames; n++) {
        const double in = n < rise ? 0.5 - 0.5 * cos(M_PI * ((double)n + 0.5) / (double)rise) : 1;
        const double rest = (double)(w->frames - n) - 0.5;
        const double out = rest < (double)fall ? 0.5 - 0.5 * cos(M_PI * rest / (double)fall) : 1;
        filter[n] = (float)(in * out * w->re[(n - zero + w->points) % w->points] / (double)w->points);
    }
    return true;
}

/* Sets a bin of the spectrum of a filter, and its mirror image. */
static void set_bin(work *w, int64_t i, double complex value) {
    const bool end = i == 0 || i == w->points / 2;
    w->re[i] = end ? cabs(value) * (creal(value) < 0 ? -1 : 1) : creal(value);
    w->im[i] = end ? 0 : cimag(value);
    w->re[(w->points - i) % w->points] = w->re[i];
    w->im[(w->points - i) % w->points] = end ? 0 : -w->im[i];
}

/* Computes the filter of a way of a channel, `frames` samples. way -1: without crossovers. */
static bool make_filter(work *w, const gc_corrected *k, int way, float *filter) {
    const gc_correction *c = w->c;
    const bool linear = w->o->phase == GC_CORRECT_LINEAR;
    const double bin = c->rate / (double)w->points;
    if (!fill_minimum(w, k->gain, linear))
        return false;
    for (int64_t i = 0; i <= w->points / 2; i++) {
        const double hz = fmax((double)i, 0.5) * bin;
        const double turn =
            w->o->phase == GC_CORRECT_MIXED ? -k->excess * excess_share(w, hz) * at(c, w->excess, hz) : 0;
        double complex value = exp(w->re[i]) * cexp(GC_J * (w->im[i] + turn)), more = 1;
        if (w->o->eq)
            more *= eq_at(&w->eq, c->rate, hz);
        if (w->o->crossover.count)
            more *= crossover_at(&w->o->crossover, way, c->rate, hz);
        value *= linear ? cabs(more) : more;
        set_bin(w, i, value);
    }
    return cut_filter(w, c->lead + k->delay, filter);
}

/* ---- Prediction -------------------------------------------------------------------------------------------------- */

/* Returns the level of what a response has more than 2 ms before its peak, in dB relative to the peak. */
static double ringing_before(const double *x, int64_t frames, double rate) {
    int64_t peak = 0;
    double most = 0;
    for (int64_t n = 0; n < frames; n++)
        if (fabs(x[n]) > fabs(x[peak]))
            peak = n;
    for (int64_t n = 0; n < peak - (int64_t)(0.002 * rate); n++)
        most = fmax(most, fabs(x[n]));
    return most > 0 ? 20 * log10(most / fabs(x[peak])) : -HUGE_VAL;
}

/* Convolves a channel's responses with the sum of its ways, and analyses the result. */
static bool predict(work *w, int channel, const float *filter) {
    gc_correction *c = w->c;
    gc_corrected *k = &c->channel[channel];
    if (!c->positions)
        return true;
    const int64_t frames = w->measured[0]->frames, total = frames + w->frames - 1;
    double *x = gather(w, channel), *f = gc_calloc(w->frames, sizeof *f);
    double *y = gc_calloc(c->positions * total, sizeof *y);
    values *mean = gc_calloc(1, (int64_t)sizeof *mean);
    bool good = x && f && y && mean;
    k->pre_ringing = k->pre_ringing_from = -HUGE_VAL;
    for (int64_t n = 0; n < w->frames * c->ways && good; n++)
        f[n % w->frames] += (double)filter[n];
    for (int p = 0; p < c->positions && good; p++) {
        good = gc_fourier_convolve(x + p * frames, frames, f, w->frames, y + p * total);
        k->pre_ringing = fmax(k->pre_ringing, good ? ringing_before(y + p * total, total, c->rate) : 0);
        k->pre_ringing_from = fmax(k->pre_ringing_from, ringing_before(x + p * frames, frames, c->rate));
    }
    good = good && average(w, channel, y, total, c->lead + k->delay, mean);
    for (int i = 0; i < c->points && good; i++)
        k->after[i] = decibels(mean->power[i]) - w->common;
    free(x);
    free(f);
    free(y);
    free(mean);
    return good;
}

/* Computes the filters of the ways of a channel, and with MIXED the share of the excess phase. */
static bool make_ways(work *w, int channel, float *filter) {
    gc_correction *c = w->c;
    gc_corrected *k = &c->channel[channel];
    double low = 0, high = 1;
    const bool mixed = w->o->phase == GC_CORRECT_MIXED;
    k->excess = mixed ? 1 : 0;
    for (int n = 0; n <= HALVINGS + 1; n++) {
        for (int way = 0; way < c->ways; way++)
            if (!make_filter(w, k, way, filter + way * w->frames))
                return false;
        if (!predict(w, channel, filter))
            return false;
        const bool allowed = k->pre_ringing <= w->o->pre_ringing;
        if (!mixed || (allowed && k->excess == 1) || n > HALVINGS)
            break;
        *(allowed ? &low : &high) = k->excess;
        k->excess = n == HALVINGS ? low : (low + high) / 2;
    }
    return true;
}

/* Times that a filter is changed by what its prediction misses of the target. The window of the corrected response
 * contains other parts of the reflections than that of the measured one. */
enum { REFINEMENTS = 2 };

/* Computes the filters of a channel. */
static bool correct_channel(work *w, int channel, float *filter) {
    const gc_correction *c = w->c;
    gc_corrected *k = &w->c->channel[channel];
    invert(w, k);
    if (w->o->phase == GC_CORRECT_MIXED && !fill_excess(w, channel))
        return false;
    bool good = make_ways(w, channel, filter);
    for (int n = 0; n < REFINEMENTS && good && c->positions && !w->o->eq; n++) {
        for (int i = 0; i < c->points; i++)
            if (!k->limited[i])
                k->gain[i] =
                    fmin(c->limit[i] + k->limit_level, k->gain[i] + share_at(c->low, c->high, c->hz[i]) *
                                                                        (c->target[i] + k->own_level - k->after[i]));
        good = make_ways(w, channel, filter);
    }
    return good;
}

/* ---- Matrices ---------------------------------------------------------------------------------------------------- */

enum { EARS = GC_CORRECTION_EARS };

/* Spectra of responses or filters, (w->points / 2 + 1) bins each. */
typedef double complex spectrum;

/* Returns the number, position x channel, of the response from a loudspeaker to an ear: each file is an ear, or the
 * only file has all ears of the first loudspeaker, then those of the second. */
static int path_of(const gc_correction *c, int ear, int speaker) {
    return c->positions == 1 ? speaker * c->ears + ear : ear * c->channels + speaker;
}

static const float *taps_of(const work *w, int path) {
    return gc_ir_plane(w->measured[path / w->c->channels], path % w->c->channels);
}

/* Finds the numbers of ears and loudspeakers. Returns ARGUMENT. */
static gpuconv_status find_shape(gc_correction *c, gpuconv_error *error) {
    c->ears = c->positions == 1 ? (int)lround(sqrt(c->channels)) : c->positions;
    c->speakers = c->positions == 1 ? c->ears : c->channels;
    if (c->positions < 1 || (c->positions == 1 && (c->ears < 2 || c->ears * c->ears != c->channels)) ||
        c->ears > EARS || c->speakers > EARS)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "%d channels in %d file%s are no matrix; a file for each of up to %d ears, with a channel for each "
            "of up to %d loudspeakers, or one with 4, 9 or 16 channels is needed: all ears of the first "
            "loudspeaker, then of the second",
            c->channels, c->positions, c->positions == 1 ? "" : "s", EARS, EARS);
    return GPUCONV_OK;
}

/* Checks the loudest response at each ear; another one may be a leak below the noise. */
static gpuconv_status check_paths(const work *w, gpuconv_error *error) {
    const gc_correction *c = w->c;
    gpuconv_status status = GPUCONV_OK;
    const int64_t frames = w->measured[0]->frames;
    for (int e = 0; e < c->ears && !status; e++) {
        double loudest = -1;
        int path = 0;
        for (int s = 0; s < c->speakers; s++) {
            double energy = 0;
            for (int64_t n = 0; n < frames; n++)
                energy += pow((double)taps_of(w, path_of(c, e, s))[n], 2);
            path = energy > loudest ? path_of(c, e, s) : path;
            loudest = fmax(loudest, energy);
        }
        const int position = path / c->channels, channel = path % c->channels;
        double *x = gather(w, channel);
        status = x ? check_direct_sound(w->o->measured[position], w->measured[position], channel, error)
                   : gc_fail_memory(error, "the responses");
        if (!status)
            status = check_noise(w, position, channel, x + position * frames, error);
        free(x);
    }
    return status;
}

/* Transforms samples into `to`. */
static bool transform(work *w, const float *x, int64_t frames, spectrum *to) {
    memset(w->re, 0, 2 * (size_t)w->points * sizeof *w->re); /* im follows */
    for (int64_t n = 0; n < frames; n++)
        w->re[n] = (double)x[n];
    if (!gc_fourier(w->re, w->im, w->points, -1))
        return false;
    for (int64_t i = 0; i <= w->points / 2; i++)
        to[i] = w->re[i] + GC_J * w->im[i];
    return true;
}

/* Fills c[speaker x ears + ear] with the inverse of h[ear x speakers + speaker] regularised by beta > 0. Returns the
 * largest magnitude. */
static double invert_matrix(const gc_correction *c, const double complex *h, double beta, double complex *inverse) {
    const int m = c->ears, n = c->speakers;
    double complex a[EARS][2 * EARS] = {{0}};
    double most = 0;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++)
            for (int s = 0; s < n; s++)
                a[i][j] += h[i * n + s] * conj(h[j * n + s]);
        a[i][i] += beta;
        a[i][m + i] = 1;
    }
    for (int k = 0; k < m; k++) /* Gauss and Jordan; the matrix is positive definite */
        for (int i = 0; i < m; i++) {
            const double complex factor = i == k ? 1 / a[k][k] : a[i][k] / a[k][k];
            for (int j = k; j < 2 * m; j++)
                a[i][j] = i == k ? a[i][j] : a[i][j] - factor * a[k][j];
        }
    for (int s = 0; s < n; s++)
        for (int j = 0; j < m; j++) {
            double complex sum = 0;
            for (int i = 0; i < m; i++)
                sum += conj(h[i * n + s]) * a[i][m + j] / a[i][i];
            inverse[s * m + j] = sum;
            most = fmax(most, cabs(sum));
        }
    return most;
}

/* Inverts the responses at a frequency with the least beta that keeps the gain below `most`. */
static void invert_bin(const gc_correction *c, const double complex *h, double most, double complex *inverse) {
    double energy = 1e-200;
    for (int i = 0; i < c->ears * c->speakers; i++)
        energy += creal(h[i] * conj(h[i]));
    double low = 1e-12 * energy, high = fmax(low, sqrt(energy) / most);
    if (invert_matrix(c, h, low, inverse) <= most)
        return;
    for (int n = 0; n < 30; n++) {
        const double beta = sqrt(low * high);
        *(invert_matrix(c, h, beta, inverse) > most ? &low : &high) = beta;
    }
    (void)invert_matrix(c, h, high, inverse);
}

/* Returns the mean energy of the responses at an ear in the range. */
static double energy_in_range(const work *w, const spectrum *h) {
    const gc_correction *c = w->c;
    const int64_t bins = w->points / 2 + 1;
    const double bin = c->rate / (double)w->points;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = (int64_t)ceil(c->low / bin); (double)i * bin <= c->high; i++, count++)
        for (int p = 0; p < c->ears * c->speakers; p++)
            sum += creal(h[p * bins + i] * conj(h[p * bins + i])) / c->ears;
    return sum / (double)gc_max(count, 1);
}

/* Replaces the responses h[ear x speakers + speaker] by the spectra of the filters f[speaker x ears + ear]. */
static void invert_matrices(const work *w, double level, const spectrum *h, spectrum *f) {
    const gc_correction *c = w->c;
    const int64_t bins = w->points / 2 + 1;
    const int count = c->ears * c->speakers;
    for (int64_t i = 0; i < bins && !gc_cancelled(); i++) {
        double complex one[EARS * EARS], inverse[EARS * EARS];
        const double hz = fmax((double)i, 0.5) * c->rate / (double)w->points, share = share_at(c->low, c->high, hz);
        for (int p = 0; p < count; p++)
            one[p] = h[p * bins + i] / level;
        invert_bin(c, one, pow(10, at(c, c->limit, hz) / 20), inverse);
        for (int s = 0; s < c->speakers; s++)
            for (int e = 0; e < c->ears; e++) {
                const double early = 2 * M_PI * hz / c->rate * (double)w->onset[path_of(c, e, s)];
                const double complex straight = c->ears == c->speakers && s == e ? cexp(GC_J * early) : 0;
                f[(s * c->ears + e) * bins + i] = share * inverse[s * c->ears + e] + (1 - share) * straight;
            }
    }
}

/* Fills the separation of an ear in an octave. */
static void separate(const work *w, double level, const spectrum *h, const spectrum *f, int ear, int octave) {
    const gc_correction *c = w->c;
    const int64_t bins = w->points / 2 + 1;
    const double bin = c->rate / (double)w->points, centre = 1000 * exp2(octave - 5);
    double own = 0, others = 0, direct = 0, crossed = 0, gain = 0;
    int64_t count = 0;
    for (int64_t i = (int64_t)ceil(fmax(c->low, centre / sqrt(2)) / bin);
         (double)i * bin <= fmin(c->high, centre * sqrt(2)); i++, count++)
        for (int k = 0; k < c->ears; k++) {
            double complex sum = 0;
            for (int s = 0; s < c->speakers; s++) {
                sum += h[(ear * c->speakers + s) * bins + i] * f[(s * c->ears + k) * bins + i];
                gain = k == ear ? fmax(gain, cabs(f[(s * c->ears + k) * bins + i])) : gain;
            }
            *(k == ear ? &own : &others) += pow(cabs(sum), 2);
            if (c->ears == c->speakers)
                *(k == ear ? &direct : &crossed) += pow(cabs(h[(ear * c->speakers + k) * bins + i]), 2);
        }
    w->c->separation[ear][octave] =
        count == 0 ? (gc_separation){(double)NAN, (double)NAN, (double)NAN, (double)NAN}
                   : (gc_separation){crossed > 0 ? decibels(direct / crossed) : (double)NAN, decibels(own / others),
                                     decibels(own / (double)count / level / level), decibels(gain * gain)};
}

/* Computes the filters of a matrix into `taps`: those of the first ear's signal first. */
static bool make_matrix(work *w, float *taps) {
    gc_correction *c = w->c;
    const int64_t bins = w->points / 2 + 1;
    const int count = c->ears * c->speakers;
    spectrum *h = gc_calloc(2 * bins * count, sizeof *h), *f = h ? h + bins * count : NULL;
    bool good = h != NULL;
    for (int p = 0; p < count && good; p++)
        good = transform(w, taps_of(w, path_of(c, p / c->speakers, p % c->speakers)), w->measured[0]->frames,
                         h + p * bins);
    const double level = good ? sqrt(energy_in_range(w, h)) : 1;
    if (good)
        invert_matrices(w, level, h, f);
    for (int p = 0; p < count && good; p++) { /* from the signal of ear p % ears to loudspeaker p / ears */
        float *to = taps + (p % c->ears * c->speakers + p / c->ears) * w->frames;
        for (int64_t i = 0; i < bins; i++)
            set_bin(w, i, f[p * bins + i]);
        good = cut_filter(w, c->lead, to) && transform(w, to, w->frames, f + p * bins);
    }
    for (int e = 0; e < c->ears && good; e++)
        for (int b = 0; b < GC_CORRECTION_OCTAVES; b++)
            separate(w, level, h, f, e, b);
    free(h);
    return good && !gc_cancelled();
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

/* Checks what no file and no range of an option decides. */
static gpuconv_status check_options(const gc_correction_options *o, gpuconv_error *error) {
    if (!(o->limit >= 0 && o->limit <= 60))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the most gain is 0 to 60 dB, or a file, not %g dB", o->limit);
    if (o->matrix && !(o->delay >= 0 && o->delay <= o->seconds))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a delay of %g s is not within filters of %g s", o->delay,
                       o->seconds);
    if (!o->files && o->phase == GC_CORRECT_MIXED)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "mixed phase corrects measured responses, and none is given");
    return GPUCONV_OK;
}

/* Adds the response of the equalisers to the gains, for reports and drawings. */
static void add_equalisers(const work *w) {
    for (int k = 0; k < w->c->channels && w->o->eq; k++)
        for (int i = 0; i < w->c->points; i++)
            w->c->channel[k].gain[i] += 20 * log10(cabs(eq_at(&w->eq, w->c->rate, w->c->hz[i])));
    for (int i = 0; i < w->c->points && w->o->eq; i++)
        w->c->target[i] += 20 * log10(cabs(eq_at(&w->eq, w->c->rate, w->c->hz[i])));
}

/* Makes the filters of all channels into a response. */
static gpuconv_status make_filters(work *w, gpuconv_error *error) {
    gc_correction *c = w->c;
    const int planes = w->o->matrix ? c->ears * c->speakers : c->channels * c->ways;
    w->points = w->o->matrix ? gc_power_of_two(gc_max(2 * (w->frames + w->measured[0]->frames), 65536))
                             : gc_power_of_two(gc_max(8 * w->frames, 65536));
    w->re = gc_calloc(w->points, 2 * (int64_t)sizeof *w->re);
    w->im = w->re ? w->re + w->points : NULL;
    w->excess = gc_calloc(POINTS, sizeof *w->excess);
    float *taps = gc_calloc(w->frames * planes, sizeof *taps);
    bool good = w->re && w->excess && taps;
    if (good && w->o->matrix)
        good = make_matrix(w, taps);
    for (int k = 0; k < c->channels && good && !w->o->matrix; k++)
        good = correct_channel(w, k, taps + (int64_t)k * c->ways * w->frames);
    if (!good) {
        free(taps);
        return gc_fail_memory(error, "the filters");
    }
    gpuconv_ir *filter = gc_ir_own(taps, planes, w->frames, c->rate);
    if (!filter)
        return gc_fail_memory(error, "the filters");
    gpuconv_status status = GPUCONV_OK;
    if (w->o->rate > 0 && w->o->rate != c->rate)
        status = gpuconv_ir_resample(filter, w->o->rate, &c->filter, error);
    else
        c->filter = gc_ir_hold(filter);
    gpuconv_ir_free(filter);
    return status;
}

gpuconv_status gc_correct(const gc_correction_options *o, gc_correction *c, gpuconv_error *error) {
    work w = {.o = o, .c = c};
    *c = (gc_correction){.ways = o->crossover.count + 1};
    gpuconv_status status = check_options(o, error);
    if (!status)
        status = read_measurements(&w, error);
    if (!status) {
        w.frames = gc_max(1, llround(o->seconds * c->rate));
        c->lead = o->matrix && o->delay > 0                      ? llround(o->delay * c->rate)
                  : o->phase == GC_CORRECT_MINIMUM && !o->matrix ? 0
                                                                 : w.frames / 2;
        status = fill_curves(&w, error);
    }
    if (!status && o->eq)
        status = eq_read(o->eq, c->rate, &w.eq, error);
    if (!status && c->ways > 1 && !(o->crossover.hz[c->ways - 2] < 0.45 * c->rate))
        status =
            gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a crossover is at %g Hz; use less than %g Hz at a rate of %g Hz",
                    o->crossover.hz[c->ways - 2], 0.45 * c->rate, c->rate);
    if (!status && c->channels * c->ways > GC_MAX_CHANNELS)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d channels of %d ways are more than %d", c->channels, c->ways,
                         GC_MAX_CHANNELS);
    if (!status)
        status = o->matrix ? find_shape(c, error) : analyse(&w, error);
    if (!status && o->matrix)
        status = check_paths(&w, error);
    if (!status)
        status = make_filters(&w, error);
    if (!status && !o->matrix)
        add_equalisers(&w);
    for (int p = 0; w.measured && p < o->files; p++)
        gpuconv_ir_free(w.measured[p]);
    free(w.measured);
    free(w.onset);
    free(w.mean);
    free(w.excess);
    free(w.re);
    return status;
}

void gc_correction_free(gc_correction *c) {
    gpuconv_ir_free(c->filter);
    free(c->channel);
    *c = (gc_correction){0};
}
