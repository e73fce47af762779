/* Exponential sine sweep: synthesis, detection in a recording, and deconvolution. */
#include "sine_sweep.h"

#include "acoustics.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/bands.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_OCTAVE = 12, NOISE = GC_HARMONICS + 1 /* index of the noise among the parts */, PARTS, UNUSED = 12 };

/* ---- Distortion: the sweep --------------------------------------------------------------------------------------- */

/* Returns the periods of a sweep in its first `frames` frames: rising zero crossings, interpolated between the last one
 * and the next. */
static double count_periods(const float *x, int64_t frames, int64_t length) {
    double count = 0, last = 0;
    for (int64_t i = 1; i < length; i++) {
        if (!(x[i - 1] < 0 && x[i] >= 0))
            continue;
        double at = (double)i - (double)x[i] / ((double)x[i] - (double)x[i - 1]);
        if (at >= (double)frames)
            return count + ((double)frames - last) / (at - last);
        count++;
        last = at;
    }
    return count;
}

bool gc_sweep_measure_growth(const gpuconv_ir *sweep, gc_sweep_growth *g) {
    const float *x = gc_ir_plane(sweep, 0);
    int64_t n = sweep->frames;
    while (n > 1 && x[n - 1] == 0)
        n--;
    double seconds = (double)n / sweep->rate, half = count_periods(x, n / 2, n), all = count_periods(x, n, n);
    if (!(half > 4 && all > 2.5 * half))
        return false;
    g->seconds = seconds / 2 / log((all - half) / half);
    g->from = half / g->seconds / expm1(seconds / 2 / g->seconds);
    g->to = g->from * exp(seconds / g->seconds);
    double quarters = g->from * g->seconds * expm1(0.75 * seconds / g->seconds);
    return fabs(count_periods(x, 3 * n / 4, n) - quarters) < 2 + 0.01 * quarters;
}

/* ---- Distortion: harmonics --------------------------------------------------------------------------------------- */

/* The parts that are cut out of the response: GC_HARMONICS harmonics, then noise between them. */
typedef struct cuts {
    double rate;
    int64_t window, points; /* frames of a cut, and of its transform */
    double *re, *im;
    double *power[PARTS]; /* sums of |H|^2 over the bins below k */
} cuts;

/* Returns how long before the direct sound a part begins. Noise is taken where harmonic 12 would be, which is weak. */
static double seconds_before(const gc_sweep_growth *g, int part) {
    return g->seconds * log(part == NOISE ? UNUSED : part);
}

/* Cuts a part out and transforms it. The cut begins with a rise of a twentieth of the window before the direct sound
 * and ends with a fall of a fifth. */
static bool cut(cuts *c, const double *response, int64_t points, int64_t from, double *power) {
    int64_t rise = gc_max(1, c->window / 20), fall = gc_max(1, c->window / 5);
    memset(c->re, 0, 2 * (size_t)c->points * sizeof *c->re);
    for (int64_t i = 0; i < c->window; i++) {
        double in = fmin(1, (double)i / (double)rise), out = fmin(1, (double)(c->window - i) / (double)fall);
        double weight = (0.5 - 0.5 * cos(M_PI * in)) * (0.5 - 0.5 * cos(M_PI * out));
        int64_t at = ((from - rise + i) % points + points) % points;
        c->re[i] = weight * response[at] / (double)points;
    }
    if (!gc_fourier(c->re, c->im, c->points, -1))
        return false;
    power[0] = 0;
    for (int64_t k = 0; k < c->points / 2; k++)
        power[k + 1] = power[k] + c->re[k] * c->re[k] + c->im[k] * c->im[k];
    return true;
}

/* Returns the mean of |H|^2 in a sixth of an octave around a frequency, at least one bin. */
static double mean_power(const cuts *c, int part, double hz) {
    return gc_bands_mean(c->power[part], c->points, c->rate, hz, 1.0 / 6);
}

/* Fills the points between three periods of the window and the frequency whose second harmonic the sweep ends with. */
static void fill_points(const cuts *c, const gc_sweep_growth *g, gc_distortion *d) {
    double top = 0.95 * fmin(g->to, c->rate / 2), low = fmax(fmax(g->from, 20), 3 * c->rate / (double)c->window);
    for (int k = (int)ceil(PER_OCTAVE * log2(low / 1000)); d->points < GC_DISTORTION_POINTS; k++) {
        double hz = 1000 * exp2((double)k / PER_OCTAVE), first = mean_power(c, 1, hz), sum = 0, noise = 0;
        int i = d->points;
        if (2 * hz > top)
            break;
        for (int n = 2; n <= GC_HARMONICS; n++) {
            bool there = n * hz <= top;
            double power = there ? mean_power(c, n, n * hz) / first : 0;
            d->harmonic[n][i] = there ? 100 * sqrt(power) : (double)NAN;
            sum += power;
            noise += there ? mean_power(c, NOISE, n * hz) / first : 0;
        }
        d->hz[i] = hz;
        d->level[i] = 10 * log10(fmax(first, 1e-30));
        d->total[i] = 100 * sqrt(sum);
        /* Before the sweep began nothing is recorded: at low frequencies the noise is not known. */
        d->noise[i] = 2 * hz > 1.3 * UNUSED * g->from ? 100 * sqrt(noise) : (double)NAN;
        d->points++;
    }
}

/* Computes the distortion.
 * @param response periodic: the recording divided by the sweep, `points` values, times before zero at the end
 * @param onset    frame of the direct sound
 * @return false if memory is exhausted or the work was cancelled */
static bool distortion_measure(const double *response, int64_t points, double rate, int64_t onset,
                               const gc_sweep_growth *g, gc_distortion *d) {
    cuts c = {.rate = rate};
    d->points = 0;
    c.window = gc_min((int64_t)(0.9 * g->seconds * log((double)GC_HARMONICS / (GC_HARMONICS - 1)) * rate), points / 2);
    c.points = gc_power_of_two(gc_max(4 * c.window, 4096));
    int64_t half = c.points / 2 + 1;
    double *memory = gc_calloc(2 * c.points + PARTS * half, (int64_t)sizeof *memory);
    bool good = memory != NULL;
    c.re = memory;
    c.im = good ? memory + c.points : NULL;
    for (int part = 1; part < PARTS && good; part++) {
        c.power[part] = memory + 2 * c.points + part * half;
        good = cut(&c, response, points, onset - llrint(seconds_before(g, part) * rate), c.power[part]);
    }
    if (good)
        fill_points(&c, g, d);
    free(memory);
    return good;
}

double gc_distortion_at(const gc_distortion *d, double hz) {
    int best = 0;
    for (int i = 1; i < d->points; i++)
        if (fabs(log(d->hz[i] / hz)) < fabs(log(d->hz[best] / hz)))
            best = i;
    return d->points ? d->total[best] : (double)NAN;
}

/* ---- Distortion: output ------------------------------------------------------------------------------------------ */

void gc_distortion_report(const gc_distortion *distortion, int channels, gpuconv_report *report) {
    char name[GC_HARMONICS + 1][8], label[48];
    for (int n = 2; n <= GC_HARMONICS; n++)
        (void)snprintf(name[n], sizeof name[n], "H%d %%", n);
    for (int c = 0; c < channels; c++) {
        const gc_distortion *d = &distortion[c];
        for (int i = 0; i < d->points; i++) {
            gc_report_cell cell[5 + GC_HARMONICS] = {{.name = "channel", .number = c + 1, .detail = true},
                                                     {.name = "Hz", .number = d->hz[i], .detail = true},
                                                     {.name = "level dB", .number = d->level[i]},
                                                     {.name = "THD %", .number = d->total[i]}};
            for (int n = 2; n <= GC_HARMONICS; n++)
                cell[2 + n] = (gc_report_cell){.name = name[n], .number = d->harmonic[n][i]};
            cell[3 + GC_HARMONICS] = (gc_report_cell){.name = "noise %", .number = d->noise[i]};
            (void)gc_format(label, sizeof label, "channel %d, %.4g Hz", c + 1, d->hz[i]);
            gc_report_cells(report, "distortion", label, 4 + GC_HARMONICS, cell);
        }
    }
}

/* Fills the panel of a channel. @param series GC_HARMONICS + 1 */
static gc_panel panel_of(const gc_distortion *d, const char *title, gc_series *series) {
    static const char *const names[] = {"", "", "second", "third", "fourth", "fifth"};
    double most = 0.1, least = 10;
    series[0] = (gc_series){.label = "THD", .colour = "#000000", .y = d->total};
    for (int n = 2; n <= GC_HARMONICS; n++)
        series[n - 1] = (gc_series){.label = names[n],
                                    .colour = gc_band_colour(n - 2, GC_HARMONICS - 1),
                                    .mark = GC_MARK_THIN,
                                    .y = d->harmonic[n]};
    series[GC_HARMONICS] =
        (gc_series){.label = "noise", .colour = GC_COLOUR_NOISE, .mark = GC_MARK_THIN, .y = d->noise};
    for (int i = 0; i < d->points; i++) {
        most = fmax(most, d->total[i]);
        least = fmin(least, d->total[i]);
    }
    return (gc_panel){.title = title,
                      .x_label = "Hz",
                      .y_label = "%",
                      .logarithmic = true,
                      .y_logarithmic = true,
                      .key_right = true,
                      .x_range = {d->points ? d->hz[0] / 1.05 : 20, d->points ? d->hz[d->points - 1] * 1.05 : 20000},
                      .y_range = {pow(10, floor(log10(fmax(least, 1e-4))) - 2), pow(10, ceil(log10(most)))},
                      .count = GC_HARMONICS + 1,
                      .steps = d->points,
                      .series = series,
                      .x = d->hz};
}

gpuconv_status gc_distortion_draw(const gc_distortion *distortion, int channels, const char *plot,
                                  gpuconv_error *error) {
    gc_panel *panel = gc_calloc(channels, (int64_t)sizeof *panel);
    gc_series *series = gc_calloc((int64_t)channels * (GC_HARMONICS + 1), (int64_t)sizeof *series);
    char(*title)[60] = gc_calloc(channels, (int64_t)sizeof *title);
    gpuconv_status status = panel && series && title ? GPUCONV_OK : gc_fail_memory(error, plot);
    for (int c = 0; c < channels && !status; c++) {
        (void)snprintf(title[c], sizeof title[c], "harmonic distortion of channel %d", c + 1);
        panel[c] = panel_of(&distortion[c], title[c], series + c * (GC_HARMONICS + 1));
    }
    if (!status)
        status = gc_plot_panels(panel, channels, channels > 1 ? 2 : 1, plot, error);
    free(panel);
    free(series);
    free((void *)title);
    return status;
}

/* ---- Timing ------------------------------------------------------------------------------------------------------ */

/* Gains of the direct sound from which a correction of drift and of lost frames is believed. */
static const double drift_gain = 1.1, loss_gain = 1.2;

/* The direct sound, its spectrum and room for a corrected one. */
typedef struct excerpt {
    int64_t points;
    double rate;
    double *re, *im, *yr, *yi;
} excerpt;

/* Hz from which the peaks of parts of the spectrum are looked at. */
static const double lowest = 200;

static int64_t bin_of(const excerpt *e, double hz) {
    return gc_max(1, (int64_t)(hz * (double)e->points / e->rate));
}

/* Divides the spectrum by the minimum-phase spectrum of its own magnitude, smoothed over a sixth of an octave: filters,
 * loudspeakers and the ends of a band delay frequencies as that does, drift and lost frames do not. Bins 20 dB below
 * the strongest become 0; the others get a weight, so that high ones do not decide alone. */
static bool remove_minimum_phase(excerpt *e) {
    const int64_t half = e->points / 2;
    double most = 0;
    e->yi[0] = 0;
    for (int64_t k = 0; k < half; k++)
        e->yi[k + 1] = e->yi[k] + e->re[k] * e->re[k] + e->im[k] * e->im[k];
    for (int64_t k = 0; k <= half; k++) {
        const int64_t from = llrint((double)k * exp2(-1.0 / 12)),
                      to = gc_min(half, llrint((double)k * exp2(1.0 / 12)) + 1);
        const double power = (e->yi[to] - e->yi[from]) / (double)gc_max(1, to - from);
        most = fmax(most, power);
        e->yr[k] = e->yr[(e->points - k) % e->points] = log(power + 1e-15 * e->yi[half]) / 2;
    }
    if (!gc_fourier_minimum_phase(e->yr, e->yi, e->points))
        return false;
    for (int64_t k = 0; k < e->points; k++) {
        const double size =
            k < half && e->yr[k] > log(0.1 * sqrt(most)) ? exp(-e->yr[k]) / sqrt((double)gc_max(1, k)) : 0;
        const double a = e->re[k], b = e->im[k], c = size * cos(e->yi[k]), s = size * sin(e->yi[k]);
        e->re[k] = a * c + b * s;
        e->im[k] = b * c - a * s;
    }
    return true;
}

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
    e->yr = e->im + e->points; /* yi follows, as im follows re */
    e->yi = e->yr + e->points;
    for (int64_t i = 0; i < e->points; i++) {
        const double weight = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)e->points);
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

/* Removes a drift of clocks from the spectrum: yr, yi. The drift e delays the frequency f of a sweep that grows e-fold
 * in L seconds by e L (1 + ln(f / from)); the phase is the integral of that. */
static void correct_drift(excerpt *e, const gc_sweep_growth *g, double drift) {
    for (int64_t k = 0; k < e->points; k++) {
        const double hz = (double)k * e->rate / (double)e->points;
        const bool there = k < e->points / 2 && hz >= g->from && hz <= g->to;
        const double phase = there ? 2 * M_PI * drift * g->seconds * hz * log(hz / g->from) : 0;
        e->yr[k] = there ? e->re[k] * cos(phase) - e->im[k] * sin(phase) : 0;
        e->yi[k] = there ? e->re[k] * sin(phase) + e->im[k] * cos(phase) : 0;
    }
}

/* Returns the peak with a drift of clocks removed. */
static double peak_without(excerpt *e, const gc_sweep_growth *g, double drift) {
    int64_t unused;
    correct_drift(e, g, drift);
    return highest(e, &unused);
}

/* Returns the peak of the frequencies from bin `from` to below bin `to`. */
static double peak_between(excerpt *e, int64_t from, int64_t to, int64_t *at) {
    for (int64_t k = 0; k < e->points; k++) {
        const bool there = k >= from && k < to;
        e->yr[k] = there ? e->re[k] : 0;
        e->yi[k] = there ? e->im[k] : 0;
    }
    return highest(e, at);
}

/* Sums the peaks of the half octaves from a split to `end`, below or above it. A direct sound has its peak at one time
 * in all of them, so that its own peak is nearly the sum; dispersion, as in a plate or a spring, moves each one
 * elsewhere.
 * @return the share of `peak`, that of all together */
static double coherence(excerpt *e, int64_t split, int64_t end, double peak) {
    double sum = 0;
    for (int64_t edge = split, next; edge != end; edge = next) {
        int64_t unused;
        next = end > split ? gc_min(end, llrint((double)edge * sqrt(2))) : gc_max(end, llrint((double)edge / sqrt(2)));
        sum += fabs(peak_between(e, gc_min(edge, next), gc_max(edge, next), &unused));
    }
    return peak / sum;
}

/* Returns whether the response without a drift is that of a room, whose direct sound then has one time. */
static bool is_drift(excerpt *e, const gc_sweep_growth *g, double drift) {
    const int64_t first = bin_of(e, fmax(lowest, g->from)), last = bin_of(e, fmin(g->to, e->rate / 2));
    int64_t unused;
    const double before = peak_between(e, first, last, &unused);
    correct_drift(e, g, drift);
    memcpy(e->re, e->yr, 2 * (size_t)e->points * sizeof *e->re);
    const double after = peak_between(e, first, last, &unused);
    return after > drift_gain * before && coherence(e, first, last, after) > 0.85;
}

/* Searches the frequency above which the response must be moved. Peaks of room responses were at least 0.68 of the sum
 * of their half octaves below it and 0.91 above, those of plates at most 0.77 above. @return the gain of
 * the peak; negative: it failed */
static double search_loss(excerpt *e, const gc_sweep_growth *g, gc_sweep_timing *found) {
    const double from = fmax(lowest, g->from), top = fmin(g->to, e->rate / 2);
    const int64_t first = bin_of(e, from), last = bin_of(e, top);
    int64_t unused;
    const double plain = peak_between(e, first, last, &unused);
    double best = 0;
    for (int step = 0; 2 * from * exp2(step / 12.0) < 0.95 * top; step++) {
        const double hz = 2 * from * exp2(step / 12.0);
        int64_t at[2] = {0, 0};
        const int64_t split = bin_of(e, hz);
        const double low = peak_between(e, first, split, &at[0]), high = peak_between(e, split, last, &at[1]);
        if (low < 0 || high < 0)
            return -1;
        if (low + high > fmax(best, loss_gain * plain) && coherence(e, split, first, low) > 0.65 &&
            coherence(e, split, last, high) > 0.85) {
            best = low + high;
            *found = (gc_sweep_timing){.lost = at[0] - at[1], .place = g->seconds * log(hz / g->from)};
        }
    }
    return plain > 0 ? best / plain : plain;
}

/* Searches the correction, of drift or of lost frames, that makes the direct sound highest. Both are 0 unless it
 * becomes higher by a tenth (drift) or a fifth (lost frames). Not found: a drift of fewer than about 12 frames over the
 * sweep, less than 0.5 ms of lost frames.
 * @param response periodic: the recording divided by the sweep, `points` values
 * @return false if memory is exhausted or the work was cancelled */
static bool time_sweep(const double *response, int64_t points, double rate, const gc_sweep_growth *g,
                       gc_sweep_timing *timing) {
    excerpt e = {0};
    gc_sweep_timing loss = {0};
    *timing = (gc_sweep_timing){0};
    const double whole = g->seconds * log(g->to / g->from) * rate; /* frames of the sweep */
    bool good = open_excerpt(&e, response, points, rate);
    const double plain = good ? peak_without(&e, g, 0) : -1;
    double best = plain, moved = 0;
    good = plain >= 0;
    for (double shift = -ceil(0.005 * rate); good && shift <= 0.005 * rate; shift += 2) {
        const double peak = peak_without(&e, g, shift / whole);
        good = peak >= 0;
        if (peak > best) {
            best = peak;
            moved = shift;
        }
    }
    const double split = good && remove_minimum_phase(&e) ? search_loss(&e, g, &loss) : -1;
    good = split >= 0;
    if (good && split > best / plain && fabs((double)loss.lost) >= 0.0005 * rate)
        *timing = loss;
    else if (good && best > drift_gain * plain && is_drift(&e, g, moved / whole))
        timing->drift = 1e6 * moved / whole;
    free(e.re);
    return good;
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

/* Returns whether a long loop must end at frame i: checks the cancel flag every 65536 frames. */
static bool cancelled_at(int64_t i) {
    return i % 65536 == 65535 && gc_cancelled();
}

static gpuconv_status check(const gc_sweep *s, double to, gpuconv_error *error) {
    if (!(s->rate >= 1000 && s->rate <= 1e6 && s->rate == floor(s->rate)))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the rate of a sweep is a whole number from 1000 to 1000000 Hz");
    if (!(s->seconds >= 0.1 && s->seconds <= 600 && s->silence >= 0 && s->silence <= 600))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a sweep lasts 0.1 to 600 s, the silence after it 0 to 600 s");
    if (!(s->from > 0 && to > s->from && to <= s->rate / 2))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the frequency of a sweep must rise, from above 0 Hz to at most %g Hz", s->rate / 2);
    if (!(s->level <= 0 && s->level >= -100))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the level of a sweep is -100 to 0 dBFS");
    return GPUCONV_OK;
}

/* Returns the fade at frame i: 20 ms at the low end, 1 ms at the high end, where even that is many periods. */
static double fade(int64_t i, int64_t n, double rate) {
    double in = 0.02 * rate, out = 0.001 * rate, left = (double)(n - 1 - i);
    double weight = (double)i < in ? 0.5 - 0.5 * cos(M_PI * (double)i / in) : 1;
    return left < out ? weight * (0.5 - 0.5 * cos(M_PI * left / out)) : weight;
}

gpuconv_status gc_sweep_samples(const gc_sweep *s, float **samples, int64_t *frames, gpuconv_error *error) {
    double to = s->to != 0 ? s->to : s->rate / 2;
    *samples = NULL;
    gpuconv_status status = check(s, to, error);
    if (status)
        return status;
    int64_t n = llrint(s->seconds * s->rate);
    *frames = n + llrint(s->silence * s->rate);
    float *created = gc_calloc(*frames, sizeof *created);
    if (!created)
        return gc_fail_memory(error, "the sweep");
    double peak = pow(10, s->level / 20), grow = log(to / s->from);
    for (int64_t i = 0; i < n && !cancelled_at(i); i++) {
        double phase = 2 * M_PI * s->from * s->seconds / grow * expm1((double)i / (double)n * grow);
        created[i] = (float)(peak * fade(i, n, s->rate) * sin(phase));
    }
    if (gc_cancelled()) {
        free(created);
        return gc_fail_cancelled(error, "the sweep");
    }
    *samples = created;
    return GPUCONV_OK;
}

gpuconv_status gc_sweep_write(const gc_sweep *s, const char *path, gpuconv_error *error) {
    float *samples;
    int64_t frames;
    gc_writer *writer = NULL;
    gpuconv_status status = gc_sweep_samples(s, &samples, &frames, error);
    if (status)
        return status;
    gc_audio_info like = gc_audio_info_float(1, (int)s->rate, frames);
    status = gc_writer_new(path, NULL, &like, 1, frames, &writer, error);
    if (!status && gc_writer_pcm(writer).container != GC_F32)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: a sweep is written as floats, into a WAV for example", path);
    if (!status)
        status = gc_writer_write(writer, samples, frames, error);
    if (!status)
        status = gc_writer_commit(writer, error);
    gc_writer_free(writer);
    free(samples);
    return status;
}

/* Converts n floats to doubles, followed by zeros. */
static void widen(const float *from, double *to, int64_t n, int64_t points) {
    for (int64_t i = 0; i < points; i++)
        to[i] = i < n ? (double)from[i] : 0;
}

/* Divides R by X. Where the sweep has almost no energy, |X|^2 is raised so that noise is not amplified
 * (regularisation). */
static void divide(double *re, double *im, const double *xr, const double *xi, int64_t points) {
    double most = 0;
    for (int64_t k = 0; k < points && !cancelled_at(k); k++)
        most = fmax(most, xr[k] * xr[k] + xi[k] * xi[k]);
    for (int64_t k = 0; k < points && !cancelled_at(k); k++) {
        double power = xr[k] * xr[k] + xi[k] * xi[k], add = power < 1e-6 * most ? 1e-6 * most : 0;
        double a = re[k], b = im[k], scale = 1 / (power + add);
        re[k] = (a * xr[k] + b * xi[k]) * scale;
        im[k] = (b * xr[k] - a * xi[k]) * scale;
    }
}

/* Returns the number of frames up to the last one of a channel that is not silent. */
static int64_t count_sounding(const float *x, int64_t n) {
    while (n > 1 && x[n - 1] == 0)
        n--;
    return n;
}

static int64_t sounding_frames(const gpuconv_ir *sweep) {
    return count_sounding(gc_ir_plane(sweep, 0), sweep->frames);
}

/* Smallest crest of a channel that contains the sweep. The correlation of N lags with noise is Gaussian: its largest
 * value exceeds t times its RMS with a probability of at most N exp(-t^2 / 2), for N = 2^24 and t = 9 about 4e-11.
 * Speech and music reach 8 to 15. A sweep of n frames with power S in noise of power P reaches about sqrt(n S / P), so
 * that 10 s at 48 kHz are detected 30 dB below the noise. Recordings without noise reach 27 (a plate, 1 s of sweep) to
 * 450. */
static const double crest_least = 18;

/* The sweep's spectrum, and room for a channel's. */
typedef struct divider {
    int64_t points;
    double *re, *im, *xr, *xi;
} divider;

/* Transforms the sweep. @return false if memory is exhausted or the work was cancelled */
static bool open_divider(divider *d, const gpuconv_ir *sweep, int64_t frames) {
    d->points = gc_power_of_two(frames + sweep->frames);
    d->re = gc_calloc(d->points, 4 * (int64_t)sizeof *d->re);
    if (!d->re)
        return false;
    d->im = d->re + d->points;
    d->xr = d->im + d->points;
    d->xi = d->xr + d->points;
    widen(gc_ir_plane(sweep, 0), d->xr, sweep->frames, d->points);
    return gc_fourier(d->xr, d->xi, d->points, -1);
}

/* Transforms a channel. */
static bool load_channel(divider *d, const float *channel, int64_t frames) {
    widen(channel, d->re, frames, d->points);
    memset(d->im, 0, (size_t)d->points * sizeof *d->im);
    return gc_fourier(d->re, d->im, d->points, -1);
}

/* Correlates the loaded channel with the sweep; overwrites it. */
static bool correlate(divider *d, gc_sweep_channel *found) {
    double most = 0, sum = 0;
    for (int64_t k = 0; k < d->points; k++) {
        double a = d->re[k], b = d->im[k];
        d->re[k] = a * d->xr[k] + b * d->xi[k];
        d->im[k] = b * d->xr[k] - a * d->xi[k];
    }
    if (!gc_fourier(d->re, d->im, d->points, 1))
        return false;
    found->lag = 0;
    for (int64_t i = 0; i < d->points; i++) {
        double power = d->re[i] * d->re[i];
        sum += power;
        if (power > most) {
            most = power;
            found->lag = i < d->points / 2 ? i : i - d->points;
        }
    }
    found->crest = sum > 0 && isfinite(sum) ? sqrt(most / sum * (double)d->points) : 0;
    found->held = found->crest >= crest_least;
    return true;
}

/* Returns how often two samples in a row are at full scale; 0 if any is above it, where no converter ends. */
static int64_t count_clips(const float *x, int64_t frames, double *peak) {
    int64_t clips = 0;
    *peak = 0;
    for (int64_t i = 0, run = 0; i < frames; i++) {
        double size = fabs((double)x[i]);
        *peak = fmax(*peak, size);
        run = size >= 0.9999 ? run + 1 : 0;
        clips += run == 2;
    }
    return *peak <= 1.0001 ? clips : 0;
}

/* Fills peak, level and clipped. A sweep at full scale has samples there itself, and another one may follow. */
static void measure_level(const float *channel, int64_t frames, const gpuconv_ir *sweep, gc_sweep_channel *found) {
    double peak, unused, sum = 0;
    int64_t own = count_clips(gc_ir_plane(sweep, 0), sweep->frames, &unused), length = sounding_frames(sweep);
    int64_t from = found->held ? gc_min(frames, gc_max(0, found->lag)) : 0,
            to = found->held ? found->lag + sweep->frames : frames;
    found->clipped = count_clips(channel + from, gc_min(to, frames) - from, &unused) > own;
    (void)count_clips(channel, frames, &peak);
    found->peak = 20 * log10(peak);
    for (int64_t i = from; i < gc_min(frames, found->lag + length); i++)
        sum += pow((double)channel[i], 2);
    found->level = sum > 0 ? 10 * log10(sum / (double)length) : -HUGE_VAL;
}

gpuconv_status gc_sweep_find(const float *channel, int64_t frames, const gpuconv_ir *sweep, gc_sweep_channel *found,
                             gpuconv_error *error) {
    divider d = {0};
    *found = (gc_sweep_channel){.inr = (double)NAN, .noise = (double)NAN, .sensitivity = (double)NAN};
    bool good = open_divider(&d, sweep, frames) && load_channel(&d, channel, frames) && correlate(&d, found);
    free(d.re);
    measure_level(channel, frames, sweep, found);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the correlation with the sweep");
}

/* Returns the ratio of the highest mean energy in 10 ms to the mean energy before time zero, in dB. Nothing but noise
 * lies there: the harmonics of a sweep of T seconds arrive more than T / 20 earlier, and 5 ms are left to the band
 * limits. */
static double range_above_noise(const divider *d, const float *response, int64_t frames, const gpuconv_ir *sweep) {
    int64_t gap = (int64_t)(0.005 * sweep->rate), part = gc_max(1, (int64_t)(0.01 * sweep->rate));
    int64_t from = gc_min((int64_t)(0.1 * sweep->rate), sounding_frames(sweep) / 20), count = 0;
    double noise = 0, highest = 0;
    for (int64_t i = -from; i < -gap; i++, count++)
        noise += pow(d->re[(i + d->points) % d->points] / (double)d->points, 2);
    for (int64_t i = 0; i + part <= frames; i += part) {
        double sum = 0;
        for (int64_t k = i; k < i + part; k++)
            sum += pow((double)response[k], 2);
        highest = fmax(highest, sum / (double)part);
    }
    return count && noise > 0 ? 10 * log10(highest / (noise / (double)count)) : HUGE_VAL;
}

/* Computes the response of the loaded channel, and its range above the noise. */
static bool solve_channel(divider *d, const gc_sweep_division *v, const gpuconv_ir *sweep, const gc_microphone *m,
                          float *out, gc_sweep_channel *found) {
    gc_acoustics a;
    divide(d->re, d->im, d->xr, d->xi, d->points);
    if (!gc_microphone_correct(m, sweep->rate, d->points, d->re, d->im) || !gc_fourier(d->re, d->im, d->points, 1))
        return false;
    /* Negative times, which contain the harmonics, are at the end of the period and are not copied. */
    for (int64_t i = 0; i < v->frames; i++)
        out[i] = (float)(d->re[i % d->points] / (double)d->points);
    if (!gc_acoustics_of(out, v->frames, sweep->rate, 0, &a, NULL))
        return false;
    /* A short response does not show where noise ends the decay. */
    found->inr = fmin(a.inr, range_above_noise(d, out, v->frames, sweep));
    found->ends_early = a.doubt & (GC_DOUBT_END20 | GC_DOUBT_END30);
    found->decays = !(a.centre < 0.001 && isnan(a.t20)); /* s: a cable, or a converter, has only the direct sound */
    found->sensitivity = m->sensitivity;
    return true;
}

gpuconv_status gc_sweep_divide(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_sweep_division *v,
                               float *const *out, gc_sweep_channel *found, gpuconv_error *error) {
    divider d = {0};
    gc_sweep_growth growth;
    bool times = gc_sweep_measure_growth(sweep, &growth);
    if (v->distortion && !times)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "distortion needs an exponential sweep that rises by more than two octaves");
    bool good = open_divider(&d, sweep, recording->frames);
    for (int c = 0; c < recording->planes && good; c++) {
        good = load_channel(&d, gc_ir_plane(recording, c), recording->frames) &&
               solve_channel(&d, v, sweep, &v->microphone[c], out[c], &found[c]);
        found[c].timing = (gc_sweep_timing){0};
        if (good && times && found[c].held) { /* all channels have one clock */
            good = time_sweep(d.re, d.points, sweep->rate, &growth, &found[c].timing);
            found[c].timing.place += (double)found[c].lag / sweep->rate;
            times = false;
        }
        if (good && v->distortion)
            good = distortion_measure(d.re, d.points, sweep->rate, gc_channel_find_onset(out[c], v->frames), &growth,
                                      &v->distortion[c]);
    }
    free(d.re);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the division by the sweep");
}

gpuconv_status gc_sweep_respond(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_sweep_division *v,
                                const char *response, gc_sweep_channel *found, double *delay, gpuconv_error *error) {
    const int channels = recording->planes;
    gpuconv_ir *made = NULL;
    float *taps = gc_calloc(channels * v->frames, sizeof *taps), *out[GC_MAX_CHANNELS];
    for (int c = 0; c < channels; c++)
        out[c] = taps + c * v->frames;
    gpuconv_status status =
        taps ? gc_sweep_divide(recording, sweep, v, out, found, error) : gc_fail_memory(error, response);
    if (!status)
        status = gpuconv_ir_new((const float *const *)out, channels, v->frames, sweep->rate, &made, error);
    if (!status) {
        *delay = (double)gpuconv_ir_onset(made, -20) / sweep->rate;
        status = gc_ir_write(made, response, true, error);
    }
    gpuconv_ir_free(made);
    free(taps);
    return status;
}

/* Returns the channel with the largest crest. */
static int find_best(const gc_sweep_found *found) {
    int best = 0;
    for (int c = 1; c < found->channels; c++)
        best = found->channel[c].crest > found->channel[best].crest ? c : best;
    return best;
}

/* Fails if the best channel shows that the recording does not contain the sweep, not all of it, or at an impossible
 * time. */
static gpuconv_status check_match(const gc_sweep_found *found, const gpuconv_ir *recording, const gpuconv_ir *sweep,
                                  const gc_sweep_job *job, int64_t frames, gpuconv_error *error) {
    const int channel = find_best(found);
    const gc_sweep_channel *best = &found->channel[channel];
    const char *recorded = job->recording, *played = job->sweep;
    const double rate = sweep->rate;
    const int64_t missing =
        best->lag + sounding_frames(sweep) - count_sounding(gc_ir_plane(recording, channel), recording->frames);
    if (!best->held)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: does not contain the sweep of %s: the crest of their correlation is %.3g and must be at least %g; "
            "record the file that was played, at a higher level",
            recorded, played, best->crest, crest_least);
    if ((double)best->lag < -0.001 * rate)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: contains the sweep %.4g s earlier than %s; swap the two files, or start recording before the "
            "sweep is played",
            recorded, (double)-best->lag / rate, played);
    /* The last milliseconds of a sweep are faded out and above the band. */
    if ((double)missing > 0.003 * rate)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: ends %.4g s before the sweep of %s does; record until the room has decayed, or swap the two "
            "files",
            recorded, (double)missing / rate, played);
    if (best->lag >= frames)
        return gc_fail(
            error, GPUCONV_ERROR_FORMAT,
            "%s: the direct sound arrives after %.4g s, later than the end of a response of %.4g s; use a larger "
            "--length",
            recorded, (double)best->lag / rate, (double)frames / rate);
    return GPUCONV_OK;
}

/* Reads both files and checks that they fit together. */
static gpuconv_status read_files(const char *recorded, const char *played, gpuconv_ir **recording, gpuconv_ir **sweep,
                                 gpuconv_error *error) {
    double peak = 0;
    gpuconv_status status = gpuconv_ir_load(recorded, recording, error);
    if (!status)
        status = gpuconv_ir_load(played, sweep, error);
    if (!status && ((*recording)->rate != (*sweep)->rate || (*sweep)->planes != 1))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "%s: the sweep must have one channel at the recording's %g Hz, not %d at %g", played,
                         (*recording)->rate, (*sweep)->planes, (*sweep)->rate);
    if (!status && (gpuconv_ir_peak(*sweep, &peak), !(peak > 0)))
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: is silent; give the sweep that was played", played);
    return status;
}

/* Finds the sweep in every channel, divides by it and writes the response. */
static gpuconv_status solve(const gpuconv_ir *recording, const gpuconv_ir *sweep, const gc_sweep_job *job,
                            int64_t frames, gc_sweep_found *found, gpuconv_error *error) {
    gc_microphone *microphones = NULL;
    gpuconv_status status = gc_microphones_new(&job->microphones, recording->planes, &microphones, error);
    for (int c = 0; c < recording->planes && !status; c++)
        status = gc_sweep_find(gc_ir_plane(recording, c), recording->frames, sweep, &found->channel[c], error);
    if (!status)
        status = check_match(found, recording, sweep, job, frames, error);
    if (!status) {
        const gc_sweep_division division = {
            .frames = frames, .microphone = microphones, .distortion = found->distortion};
        status = gc_sweep_respond(recording, sweep, &division, job->response, found->channel, &found->delay, error);
    }
    gc_microphones_free(microphones, recording->planes);
    return status;
}

/* Returns the frames of the response. */
static int64_t response_frames(const gpuconv_ir *recording, const gpuconv_ir *sweep, double seconds) {
    int64_t frames = seconds > 0 ? gc_max(1, llrint(seconds * sweep->rate))
                                 : gc_max((int64_t)sweep->rate, recording->frames - sounding_frames(sweep));
    return gc_min(frames, recording->frames);
}

gpuconv_status gc_sweep_read(const gc_sweep_job *job, gc_sweep_found *found, gpuconv_error *error) {
    const char *const path[] = {job->recording, job->sweep};
    gpuconv_ir *recording = NULL, *sweep = NULL;
    *found = (gc_sweep_found){0};
    gpuconv_status status = gc_ir_keep_files(job->response, path, 2, error);
    if (!status)
        status = gc_microphones_keep(&job->microphones, job->response, error);
    if (!status)
        status = read_files(job->recording, job->sweep, &recording, &sweep, error);
    if (!status && !(job->seconds >= 0 && job->seconds <= 600))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is 0 to 600 s long");
    if (!status) {
        found->channels = recording->planes;
        found->channel = gc_calloc(recording->planes, (int64_t)sizeof *found->channel);
        if (job->distortion)
            found->distortion = gc_calloc(recording->planes, (int64_t)sizeof *found->distortion);
        bool good = found->channel && (found->distortion || !job->distortion);
        status = good ? GPUCONV_OK : gc_fail_memory(error, job->response);
    }
    if (!status)
        status = solve(recording, sweep, job, response_frames(recording, sweep, job->seconds), found, error);
    gpuconv_ir_free(recording);
    gpuconv_ir_free(sweep);
    return status;
}
