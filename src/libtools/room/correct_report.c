/* The results of a correction as a report, drawings and a page. */
#include "correct.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/report/report.h"
#include "page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

/* Deviations of a curve from the target in the range. */
typedef struct deviation {
    double rms, largest, hz; /* dB; where it is largest */
} deviation;

static bool in_range(const gc_correction *c, int i) {
    return c->hz[i] >= c->low && c->hz[i] <= c->high;
}

/* Returns the target of a channel, which keeps its level if levels are not aligned. */
static double target_of(const gc_correction *c, const gc_corrected *k, int i) {
    return c->target[i] + k->own_level;
}

static deviation deviation_of(const gc_correction *c, const gc_corrected *k, const double *curve) {
    deviation d = {0};
    int count = 0;
    for (int i = 0; i < c->points; i++) {
        const double one = curve[i] - target_of(c, k, i);
        if (!in_range(c, i))
            continue;
        d.rms += one * one;
        count++;
        if (fabs(one) >= fabs(d.largest)) {
            d.largest = one;
            d.hz = c->hz[i];
        }
    }
    d.rms = sqrt(d.rms / count);
    return d;
}

/* Returns the largest gain of the filter in dB: the headroom that a signal at full scale needs. */
static double headroom_of(const gc_correction *c) {
    double most = -HUGE_VAL;
    for (int k = 0; k < c->channels; k++)
        for (int i = 0; i < c->points; i++)
            most = fmax(most, c->channel[k].gain[i]);
    return most;
}

/* Writes the ranges in which the gain is limited: "31 to 40 Hz, 92 to 97 Hz", or "none". */
static void describe_limits(const gc_correction *c, const gc_corrected *k, char *to, size_t room) {
    size_t used = 0;
    (void)snprintf(to, room, "none");
    for (int i = 0; i < c->points;) {
        int end = i;
        while (end < c->points && k->limited[end] && in_range(c, end))
            end++;
        if (end == i) {
            i++;
            continue;
        }
        const int written =
            gc_format(to + used, room - used, "%s%.3g to %.3g Hz", used ? ", " : "", c->hz[i], c->hz[end - 1]);
        if (written < 0 || (size_t)written >= room - used)
            return;
        used += (size_t)written;
        i = end;
    }
}

/* Returns the mean of a curve in the third octave around a frequency. */
static double mean_in(const gc_correction *c, const double *curve, double centre) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < c->points; i++)
        if (fabs(log2(c->hz[i] / centre)) <= 1.0 / 6) {
            sum += curve[i];
            count++;
        }
    return count ? sum / count : (double)NAN;
}

static void report_bands(const gc_correction *c, int channel, gpuconv_report *report) {
    static const double nominal[] = {1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8}; /* ISO 266 */
    const gc_corrected *k = &c->channel[channel];
    char list[48], label[32];
    (void)snprintf(list, sizeof list, "channel %d, dB", channel + 1);
    for (int b = 5; b < 60; b++) {
        const double hz = pow(10, b / 10.0);
        const gc_report_cell cells[] = {{"before", NULL, mean_in(c, k->before, hz), false},
                                        {"target", NULL, mean_in(c, c->target, hz) + k->own_level, false},
                                        {"filter", NULL, mean_in(c, k->gain, hz), false},
                                        {"after", NULL, mean_in(c, k->after, hz), false}};
        if (hz < 0.99 * c->low || hz > 1.01 * c->high)
            continue;
        (void)gc_format(label, sizeof label, "%g Hz", nominal[b % 10] * pow(10, floor(b / 10.0)));
        gc_report_cells(report, list, label, 4, cells);
    }
}

static void report_channel(const gc_correction *c, int channel, gpuconv_report *report) {
    const gc_corrected *k = &c->channel[channel];
    const deviation before = deviation_of(c, k, k->before), after = deviation_of(c, k, k->after);
    char label[24], limits[256];
    describe_limits(c, k, limits, sizeof limits);
    const gc_report_cell cells[] = {{"level dB", NULL, k->level, false},
                                    {"delay ms", NULL, 1e3 * (double)k->delay / c->rate, false},
                                    {"rms before dB", NULL, before.rms, false},
                                    {"rms after dB", NULL, after.rms, false},
                                    {"largest after dB", NULL, after.largest, false},
                                    {"at Hz", NULL, after.hz, false},
                                    {"pre-ringing dB", NULL, k->pre_ringing, false},
                                    {"excess phase %", NULL, 100 * k->excess, false},
                                    {"gain limited", limits, 0, false}};
    (void)snprintf(label, sizeof label, "channel %d", channel + 1);
    gc_report_cells(report, "channels", label, (int)(sizeof cells / sizeof *cells), cells);
}

/* Reports the separation of the ears by octaves. Returns the largest gain. */
static double report_separation(const gc_correction *c, gpuconv_report *report) {
    double most = -HUGE_VAL;
    for (int e = 0; e < c->ears; e++)
        for (int b = 0; b < GC_CORRECTION_OCTAVES; b++) {
            const gc_separation *s = &c->separation[e][b];
            const gc_report_cell cells[] = {{"separation before", NULL, s->before, false},
                                            {"after", NULL, s->after, false},
                                            {"level after", NULL, s->level, false},
                                            {"most gain", NULL, s->gain, false}};
            char list[24], label[24];
            if (isnan(s->after))
                continue;
            most = fmax(most, s->gain);
            (void)snprintf(list, sizeof list, "ear %d, dB", e + 1);
            (void)gc_format(label, sizeof label, "%g Hz", b ? 1000 * exp2(b - 5) : 31.5);
            gc_report_cells(report, list, label, 4, cells);
        }
    return most;
}

void gc_correction_report(const gc_correction *c, gpuconv_report *report) {
    gc_report_count(report, "correction", "positions", c->positions);
    gc_report_measure(report, "correction", "from", c->low, "Hz", 1, 0);
    gc_report_measure(report, "correction", "to", c->high, "Hz", 1, 0);
    gc_report_measure(report, "correction", "length",
                      1e3 * (double)gpuconv_ir_frames(c->filter) / gpuconv_ir_rate(c->filter), "ms", 1, 0);
    gc_report_measure(report, "correction", "latency", 1e3 * (double)c->lead / c->rate, "ms", 1, 0);
    const double headroom = c->ears ? report_separation(c, report) : headroom_of(c);
    gc_report_measure(report, "correction", "headroom", headroom, "dB", 1, 0);
    if (c->ears) {
        gc_report_count(report, "correction", "loudspeakers", c->speakers);
        return;
    }
    for (int k = 0; k < c->channels && c->positions; k++)
        report_channel(c, k, report);
    for (int k = 0; k < c->channels && c->positions; k++)
        report_bands(c, k, report);
}

/* ---- Drawings ---------------------------------------------------------------------------------------------------- */

enum { RESPONSE_SERIES = 3, FILTER_SERIES = 2, SERIES = RESPONSE_SERIES + FILTER_SERIES };

/* The panels of a correction, two for each channel that is drawn. */
typedef struct drawing {
    gc_panel panel[2 * GC_PLOT_CHANNELS];
    gc_series series[GC_PLOT_CHANNELS][SERIES];
    double target[GC_PLOT_CHANNELS][GC_CORRECTION_POINTS], limit[GC_PLOT_CHANNELS][GC_CORRECTION_POINTS];
    char title[2 * GC_PLOT_CHANNELS][48];
    int panels;
} drawing;

/* Adds a panel whose y axis has all values of its series in the range, from -40 to 30 dB at most. */
static void add_panel(drawing *d, const gc_correction *c, const char *title, const gc_series *series, int count) {
    char *text = d->title[d->panels];
    double least = -6, most = 6;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < c->points; i++)
            if (in_range(c, i)) {
                least = fmax(-40, fmin(least, series[k].y[i]));
                most = fmin(30, fmax(most, series[k].y[i]));
            }
    (void)snprintf(text, sizeof d->title[0], "%s", title);
    d->panel[d->panels++] = (gc_panel){.title = text,
                                       .x_label = "Hz",
                                       .y_label = "dB",
                                       .logarithmic = true,
                                       .x_range = {fmax(10, c->low / 2), c->rate / 2},
                                       .y_range = {3 * floor(least / 3) - 3, 3 * ceil(most / 3) + 3},
                                       .count = count,
                                       .steps = c->points,
                                       .series = series,
                                       .x = c->hz};
}

/* Returns the panels, to be freed; NULL: out of memory. */
static drawing *make_drawing(const gc_correction *c) {
    drawing *d = gc_calloc(1, (int64_t)sizeof *d);
    for (int k = 0; d && k < c->channels && k < GC_PLOT_CHANNELS; k++) {
        const gc_corrected *one = &c->channel[k];
        gc_series *s = d->series[k];
        char title[48];
        for (int i = 0; i < c->points; i++) {
            d->target[k][i] = in_range(c, i) ? target_of(c, one, i) : (double)NAN;
            d->limit[k][i] = c->limit[i] + one->limit_level;
        }
        s[0] = (gc_series){.label = "before", .colour = GC_COLOUR_NOISE, .y = one->before};
        s[1] = (gc_series){.label = "target", .colour = GC_COLOUR_MEAN, .mark = GC_MARK_THIN, .y = d->target[k]};
        s[2] = (gc_series){.label = "after", .colour = gc_channel_colour(0), .y = one->after};
        s[3] = (gc_series){.label = "filter", .colour = gc_channel_colour(0), .y = one->gain};
        s[4] = (gc_series){.label = "limit", .colour = GC_COLOUR_MEAN, .mark = GC_MARK_THIN, .y = d->limit[k]};
        if (c->positions) {
            (void)snprintf(title, sizeof title, "channel %d: response", k + 1);
            add_panel(d, c, title, s, RESPONSE_SERIES);
        }
        (void)snprintf(title, sizeof title, "channel %d: filter", k + 1);
        add_panel(d, c, title, s + RESPONSE_SERIES, c->positions ? FILTER_SERIES : 1);
    }
    return d;
}

gpuconv_status gc_correction_draw(const gc_correction *c, const char *path, gpuconv_error *error) {
    drawing *d = make_drawing(c);
    const gpuconv_status status =
        d ? gc_plot_panels(d->panel, d->panels, c->positions ? 2 : 1, path, error) : gc_fail_memory(error, path);
    free(d);
    return status;
}

gpuconv_status gc_correction_page(const gc_correction *c, const char *path, gpuconv_error *error) {
    drawing *d = make_drawing(c);
    gpuconv_report *report = NULL;
    gpuconv_status status = d && gpuconv_report_new(&report) == GPUCONV_OK ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        gc_correction_report(c, report);
        status = gc_page_write_panels(path, "correction", d->panel, d->panels, report, error);
    }
    gpuconv_report_free(report);
    free(d);
    return status;
}
