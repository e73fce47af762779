/* Cuts each harmonic's response out, transforms it, and compares it with the fundamental's. */
#include "sine_sweep.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/bands.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/report/plot.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_OCTAVE = 12, NOISE = GC_HARMONICS + 1 /* index of the noise among the parts */, PARTS, UNUSED = 12 };

static const double pi = 3.14159265358979323846;

/* ---- The sweep --------------------------------------------------------------------------------------------------- */

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

/* ---- Harmonics --------------------------------------------------------------------------------------------------- */

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
        double weight = (0.5 - 0.5 * cos(pi * in)) * (0.5 - 0.5 * cos(pi * out));
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

bool gc_distortion_measure(const double *response, int64_t points, double rate, int64_t onset, const gc_sweep_growth *g,
                           gc_distortion *d) {
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

/* ---- Output ------------------------------------------------------------------------------------------------------ */

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
