/*
 * Drawings of responses, as panels: decays and spectra of a response, and parameters by band over positions.
 */
#include "charts.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/bands.h"
#include "libgpuconv/dsp/fourier.h"
#include "libgpuconv/ir/object.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Charts of a response ---------------------------------------------------------------------------------------- */

enum { DRAWN = GC_PLOT_CHANNELS, POINTS = 400, COLUMNS = 300, ROWS = 128, SLICES = 40, SLICE_ROWS = 150 };
enum { WINDOW = 2048, PADDED = 4 * WINDOW }; /* frames of a column of the spectrogram, and points of its transform */

struct gc_charts {
    const gc_figures *figures;
    int channels;
    double seconds, waterfall_seconds; /* extents of the axes */
    double top;                        /* dB, of the frequency response */
    double delay;                      /* ms, of the group delay */
    double time[GC_ACOUSTICS_CURVE], hz[POINTS], slice_hz[SLICE_ROWS];
    double level[DRAWN][POINTS], group[DRAWN][POINTS];
    float image[COLUMNS * ROWS], waterfall[SLICES * SLICE_ROWS];
    gc_series decay[2 * DRAWN], bands[GC_OCTAVE_BANDS], response[DRAWN], delays[DRAWN];
    char label[DRAWN][24], band[GC_OCTAVE_BANDS][24], name[110], by_bands[60], waterfall_of[60], spectrogram_of[60];
};

/* Sums of powers over frequency: means over any range of bins. */
typedef struct spectrum {
    int64_t points; /* of the transform */
    double rate;
    double *power, *moment; /* sums of the bins below k: |H|^2 and Re(conj(H) T), where T transforms t h(t) */
} spectrum;

/* Transforms h + i t h and writes the sums. @param work 2 x points doubles */
static bool fill_spectrum(const float *taps, int64_t frames, spectrum *s, double *work) {
    double *re = work, *im = work + s->points;
    memset(work, 0, 2 * (size_t)s->points * sizeof *work);
    for (int64_t i = 0; i < frames; i++) {
        re[i] = (double)taps[i];
        im[i] = (double)taps[i] * (double)i / s->rate;
    }
    if (!gc_fourier(re, im, s->points, -1))
        return false;
    s->power[0] = s->moment[0] = s->power[1] = s->moment[1] = 0;
    for (int64_t k = 1; k < s->points / 2; k++) {
        int64_t m = s->points - k;
        double hr = (re[k] + re[m]) / 2, hi = (im[k] - im[m]) / 2, tr = (im[k] + im[m]) / 2, ti = (re[m] - re[k]) / 2;
        s->power[k + 1] = s->power[k] + hr * hr + hi * hi;
        s->moment[k + 1] = s->moment[k] + hr * tr + hi * ti;
    }
    return true;
}

static double decibels(double power) {
    return power > 1e-30 ? 10 * log10(power) : (double)NAN;
}

/* Fills frequency response and group delay. The group delay is the mean over the smoothed range, weighted with the
 * energy: -d phase / d omega = Re(T / H). */
static void fill_response(gc_charts *c, const spectrum *s, double smoothing, int channel) {
    for (int k = 0; k < POINTS; k++) {
        double power = gc_bands_mean(s->power, s->points, s->rate, c->hz[k], smoothing);
        c->level[channel][k] = decibels(power);
        c->group[channel][k] =
            power > 1e-30 ? 1000 * gc_bands_mean(s->moment, s->points, s->rate, c->hz[k], fmax(smoothing, 1.0 / 12)) /
                                gc_bands_mean(s->power, s->points, s->rate, c->hz[k], fmax(smoothing, 1.0 / 12))
                          : (double)NAN;
    }
}

/* Fills the waterfall: the spectrum of the response from a time on, which begins with half a Hann window of 2 ms
 * (cumulative spectral decay; Fincham, JAES 33 (1985)). */
static bool fill_waterfall(gc_charts *c, const float *taps, spectrum *s, double *work, float *part) {
    int64_t frames = c->figures->ir->frames, rise = gc_max(1, (int64_t)(0.002 * s->rate));
    int64_t onset = gpuconv_ir_onset(c->figures->ir, -20);
    double most = -HUGE_VAL;
    for (int slice = 0; slice < SLICES; slice++) {
        int64_t from = onset + (int64_t)(c->waterfall_seconds * s->rate * slice / SLICES) - rise;
        for (int64_t i = 0; i < frames; i++) {
            int64_t in = i - from;
            double window = in <= 0 ? 0 : in >= rise ? 1 : 0.5 - 0.5 * cos(M_PI * (double)in / (double)rise);
            part[i] = (float)window * taps[i];
        }
        if (!fill_spectrum(part, frames, s, work))
            return false;
        for (int r = 0; r < SLICE_ROWS; r++) {
            double level =
                10 * log10(fmax(gc_bands_mean(s->power, s->points, s->rate, c->slice_hz[r], 1.0 / 12), 1e-30));
            c->waterfall[slice * SLICE_ROWS + r] = (float)level;
            most = fmax(most, level);
        }
    }
    for (int k = 0; k < SLICES * SLICE_ROWS; k++)
        c->waterfall[k] -= (float)most;
    return true;
}

/* Fills the spectrogram: Hann windows, in dB relative to the highest level. @param re 2 x PADDED doubles */
static bool fill_image(gc_charts *c, const float *taps, int64_t frames, double *re) {
    double *im = re + PADDED, most = -HUGE_VAL;
    for (int column = 0; column < COLUMNS; column++) {
        int64_t first = frames * column / COLUMNS - WINDOW / 2;
        memset(re, 0, 2 * PADDED * sizeof *re);
        for (int64_t i = 0; i < WINDOW; i++) {
            int64_t at = first + i;
            double window = 0.5 - 0.5 * cos(2 * M_PI * (double)i / WINDOW);
            re[i] = at >= 0 && at < frames ? (double)taps[at] * window : 0;
        }
        if (!gc_fourier(re, im, PADDED, -1))
            return false;
        for (int k = 0; k < PADDED / 2; k++)
            re[k] = re[k] * re[k] + im[k] * im[k];
        gc_bands_column(re, PADDED, c->figures->ir->rate, ROWS, c->image + column * ROWS);
        for (int r = 0; r < ROWS; r++)
            most = fmax(most, (double)c->image[column * ROWS + r]);
    }
    for (int k = 0; k < COLUMNS * ROWS; k++)
        c->image[k] -= (float)most;
    return true;
}

/* Returns whether a band is an octave's mid-band, also among third-octaves. */
static bool is_octave(const gc_octave_band *band) {
    double step = log2(band->nominal / 1000);
    return fabs(step - rint(step)) < 0.05;
}

/* Fills the curves of the decay by bands. */
static void fill_bands(gc_charts *c, const gc_figures *f) {
    bool thirds = f->bands > 12;
    for (int b = 1; b < f->bands; b++) {
        const gc_octave_band *band = &f->figure[b].band;
        (void)gc_format(c->band[b - 1], sizeof c->band[0], "%g Hz", band->nominal);
        c->bands[b - 1] = (gc_series){.label = is_octave(band) ? c->band[b - 1] : NULL,
                                      .colour = gc_band_colour(b - 1, f->bands - 1),
                                      .mark = thirds && !is_octave(band) ? GC_MARK_THIN : GC_MARK_LINE,
                                      .y = f->decay[b].remaining};
    }
    const char *which = c->figures->channels > 1 ? " of channel 1" : "";
    (void)snprintf(c->by_bands, sizeof c->by_bands, "decay by %s%s", thirds ? "third-octaves" : "octaves", which);
    (void)snprintf(c->waterfall_of, sizeof c->waterfall_of, "waterfall%s", which);
    (void)snprintf(c->spectrogram_of, sizeof c->spectrogram_of, "spectrogram%s", which);
}

/* Sets the frequencies, the names and the series. */
static void set_axes(gc_charts *c, const gc_figures *f) {
    double lowest = gc_bands_lowest(f->ir->rate), ratio = f->ir->rate / 2 / lowest;
    char name[28];
    gc_visible(name, sizeof name, gc_file_name(f->path));
    (void)snprintf(c->name, sizeof c->name, "%s: remaining energy (thin: energy)", name);
    c->seconds = (double)f->ir->frames / f->ir->rate;
    for (int k = 0; k < GC_ACOUSTICS_CURVE; k++)
        c->time[k] = (k + 0.5) * f->decay->step;
    for (int k = 0; k < POINTS; k++)
        c->hz[k] = lowest * pow(ratio, (k + 0.5) / POINTS);
    for (int k = 0; k < SLICE_ROWS; k++)
        c->slice_hz[k] = lowest * pow(ratio, (k + 0.5) / SLICE_ROWS);
    for (int i = 0; i < c->channels; i++) {
        const gc_decay *decay = &f->decay[i * f->bands];
        const char *colour = gc_channel_colour(i);
        (void)snprintf(c->label[i], sizeof c->label[0], "channel %d", i + 1);
        c->decay[i] = (gc_series){.colour = colour, .mark = GC_MARK_THIN, .y = decay->energy};
        c->decay[c->channels + i] = (gc_series){.label = c->label[i], .colour = colour, .y = decay->remaining};
        c->response[i] = (gc_series){.label = c->label[i], .colour = colour, .y = c->level[i]};
        c->delays[i] = (gc_series){.label = c->label[i], .colour = colour, .y = c->group[i]};
    }
    fill_bands(c, f);
}

static void set_scales(gc_charts *c) {
    double top = -HUGE_VAL, delay = 0;
    for (int i = 0; i < c->channels; i++)
        for (int k = 0; k < POINTS; k++) {
            top = c->level[i][k] > top ? c->level[i][k] : top;
            if (c->level[i][k] > top - 40 && c->group[i][k] > delay)
                delay = c->group[i][k];
        }
    for (int i = 0; i < c->channels; i++)
        for (int k = 0; k < POINTS; k++)
            if (!(c->level[i][k] > top - 50)) /* below this level the delay is random */
                c->group[i][k] = (double)NAN;
    c->top = isfinite(top) ? 10 * ceil(top / 10) + 5 : 0;
    c->delay = fmax(1, delay * 1.1);
}

/* Returns the seconds in which the slowest of the responses decays by 50 dB: the extent of their waterfalls. */
static double charts_span(const gc_figures *f, int count) {
    double most = 0.01;
    for (int i = 0; i < count; i++) {
        const gc_decay *decay = f[i].decay;
        int last = GC_ACOUSTICS_CURVE - 1;
        while (last > 0 && !(decay->remaining[last] > -50))
            last--;
        most = fmax(most, decay->step * (last + 1) - f[i].figure->a.onset);
    }
    return most;
}

/* Analyses a response. Returns MEMORY, CANCELLED. */
static gpuconv_status charts_new(const gc_figures *f, double smoothing, double span, gc_charts **charts,
                                 gpuconv_error *error) {
    gc_charts *c = gc_calloc(1, sizeof *c);
    int64_t frames = f->ir->frames, points = gc_bands_points(frames, f->ir->rate);
    double *work = gc_calloc(gc_max(3 * points + 2, 2 * PADDED), (int64_t)sizeof *work);
    float *part = gc_calloc(frames, sizeof *part);
    bool good = c && work && part;
    *charts = NULL;
    if (good) {
        spectrum s = {points, f->ir->rate, work + 2 * points, work + 2 * points + points / 2 + 1};
        c->figures = f;
        c->channels = f->channels < DRAWN ? f->channels : DRAWN;
        c->waterfall_seconds = span;
        set_axes(c, f);
        for (int i = 0; i < c->channels && good; i++) {
            good = fill_spectrum(gc_ir_plane(f->ir, i), frames, &s, work);
            fill_response(c, &s, smoothing, i);
        }
        good = good && fill_waterfall(c, gc_ir_plane(f->ir, 0), &s, work, part) &&
               fill_image(c, gc_ir_plane(f->ir, 0), frames, work);
        set_scales(c);
    }
    free(work);
    free(part);
    if (!good) {
        gc_charts_free(c);
        return gc_fail_memory(error, "the drawing");
    }
    *charts = c;
    return GPUCONV_OK;
}

void gc_charts_free(gc_charts *c) {
    free(c);
}

/* Gives several analyses the same axes. */
static void share_scales(gc_charts *const *charts, int count) {
    double seconds = 0, top = -HUGE_VAL, delay = 0;
    for (int k = 0; k < count; k++) {
        seconds = fmax(seconds, charts[k]->seconds);
        top = fmax(top, charts[k]->top);
        delay = fmax(delay, charts[k]->delay);
    }
    for (int k = 0; k < count; k++) {
        charts[k]->seconds = seconds;
        charts[k]->top = top;
        charts[k]->delay = delay;
    }
}

static gc_panel time_panel(const gc_charts *c, const char *title) {
    return (gc_panel){.title = title,
                      .x_label = "seconds",
                      .y_label = "dB",
                      .x_range = {0, c->seconds},
                      .y_range = {-80, 3},
                      .steps = GC_ACOUSTICS_CURVE,
                      .x = c->time};
}

static gc_panel frequency_panel(const gc_charts *c, const char *title, const gc_series *series) {
    double rate = c->figures->ir->rate;
    return (gc_panel){.title = title,
                      .x_label = "Hz",
                      .logarithmic = true,
                      .x_range = {gc_bands_lowest(rate), rate / 2},
                      .count = c->channels,
                      .steps = POINTS,
                      .series = series,
                      .x = c->hz};
}

void gc_charts_panels(const gc_charts *c, gc_panel panel[GC_CHARTS_PANELS]) {
    const gc_figures *f = c->figures;
    double low = gc_bands_lowest(f->ir->rate), high = f->ir->rate / 2;
    panel[0] = time_panel(c, c->name);
    panel[0].count = 2 * c->channels;
    panel[0].series = c->decay;
    panel[1] = time_panel(c, c->by_bands);
    panel[1].count = f->bands - 1;
    panel[1].series = c->bands;
    panel[1].key_right = true;
    panel[2] = frequency_panel(c, "frequency response", c->response);
    panel[2].y_label = "dB";
    panel[2].y_range[0] = c->top - 60;
    panel[2].y_range[1] = c->top;
    panel[3] = (gc_panel){.title = c->waterfall_of,
                          .x_label = "Hz",
                          .logarithmic = true,
                          .waterfall = true,
                          .x_range = {low, high},
                          .seconds = c->waterfall_seconds,
                          .level_range = {-60, 0},
                          .image = c->waterfall,
                          .columns = SLICES,
                          .rows = SLICE_ROWS,
                          .x = c->slice_hz};
    panel[4] = frequency_panel(c, "group delay", c->delays);
    panel[4].y_label = "ms";
    panel[4].y_range[1] = c->delay;
    panel[5] = (gc_panel){.title = c->spectrogram_of,
                          .x_label = "seconds",
                          .y_label = "Hz",
                          .x_range = {0, c->seconds},
                          .y_range = {low, high},
                          .seconds = (double)f->ir->frames / f->ir->rate,
                          .level_range = {-80, 0},
                          .image = c->image,
                          .columns = COLUMNS,
                          .rows = ROWS};
}

gpuconv_status gc_charts_new_all(const gc_figures *figures, int count, double smoothing, gc_charts **charts,
                                 gpuconv_error *error) {
    const double span = charts_span(figures, count);
    gpuconv_status status = GPUCONV_OK;
    for (int k = 0; k < count && !status; k++)
        status = charts_new(&figures[k], smoothing, span, &charts[k], error);
    if (!status)
        share_scales(charts, count);
    return status;
}

gpuconv_status gc_charts_draw(const gc_figures *figures, int count, double smoothing, const char *plot,
                              gpuconv_error *error) {
    gc_charts *charts[GC_CHARTS_FILES] = {NULL};
    gc_panel own[GC_CHARTS_PANELS], panels[GC_CHARTS_PANELS * GC_CHARTS_FILES];
    count = count < GC_CHARTS_FILES ? count : GC_CHARTS_FILES;
    gpuconv_status status = gc_charts_new_all(figures, count, smoothing, charts, error);
    for (int k = 0; k < count && !status; k++) {
        gc_charts_panels(charts[k], own);
        for (int i = 0; i < GC_CHARTS_PANELS; i++)
            panels[i * count + k] = own[i];
    }
    if (!status)
        status = gc_plot_panels(panels, GC_CHARTS_PANELS * count, count == 1 ? 2 : count, plot, error);
    for (int k = 0; k < count; k++)
        gc_charts_free(charts[k]);
    return status;
}

/* ---- Charts by band ---------------------------------------------------------------------------------------------- */

enum { AREA, FIRST, OTHERS }; /* series of a panel: the area, the positions from FIRST on, and above them the mean */

/* The curves of a parameter that belong to no single position. */
typedef struct curves {
    double mean[GC_OCTAVE_BANDS], low[GC_OCTAVE_BANDS], high[GC_OCTAVE_BANDS];
    double near_low[GC_OCTAVE_BANDS], near_high[GC_OCTAVE_BANDS]; /* just noticeable differences from the mean */
    char title[80];
} curves;

struct gc_band_charts {
    gc_panel panel[GC_BAND_PANELS];
    curves curve[GC_BAND_PANELS];
    double hz[GC_OCTAVE_BANDS];
    char label[GC_PLOT_CHANNELS + 1][40]; /* of files or channels */
    int bands, positions;
    gc_series *series; /* panels x (OTHERS + positions) */
    double *value;     /* panels x positions x bands */
};

/* Returns a position's value in a band; NaN if its file has no such band. */
static double value_at(const gc_figures *f, int channel, double nominal, gc_quantity q) {
    for (int b = 1; b < f->bands; b++)
        if (f->figure[b].band.nominal == nominal)
            return gc_quantity_of(gc_figure_at(f, channel, b), q);
    return (double)NAN;
}

/* Fills mean, deviation and area. */
static void fill_curves(gc_band_charts *c, const gc_positions *p, gc_quantity q) {
    const gc_quantity_info *about = &gc_quantity_about[q];
    curves *own = &c->curve[q];
    for (int b = 0; b < c->bands; b++) {
        gc_mean m = gc_positions_mean(p, c->hz[b], q);
        double near = about->relative ? about->noticeable * m.mean : about->noticeable;
        double spread = isnan(m.deviation) ? 0 : m.deviation;
        own->mean[b] = m.mean;
        own->low[b] = m.mean - spread;
        own->high[b] = m.mean + spread;
        own->near_low[b] = m.mean - near;
        own->near_high[b] = m.mean + near;
    }
    (void)gc_format(own->title, sizeof own->title, "%s (grey: just noticeable, %g %s)",
                    q == GC_LEVEL && !isnan(p->figures->figure->strength) ? "sound strength G" : about->title,
                    about->relative ? 100 * about->noticeable : about->noticeable, about->relative ? "%" : about->unit);
}

/* Fills the series of a panel. @return the extent of its values */
static void fill_series(gc_band_charts *c, const gc_positions *p, gc_quantity q, double extent[2]) {
    gc_series *s = c->series + q * (OTHERS + c->positions);
    const curves *own = &c->curve[q];
    unsigned named = 0; /* files or channels with an entry in the key */
    s[AREA] = (gc_series){.colour = GC_COLOUR_AREA, .mark = GC_MARK_AREA, .low = own->near_low, .high = own->near_high};
    s[FIRST + c->positions] = (gc_series){.label = "mean \302\261 s.d.",
                                          .colour = GC_COLOUR_MEAN,
                                          .mark = GC_MARK_BARS,
                                          .y = own->mean,
                                          .low = own->low,
                                          .high = own->high};
    for (int k = 0; k < c->positions; k++) {
        int channel;
        const gc_figures *f = gc_positions_at(p, k, &channel);
        double *value = c->value + ((int64_t)q * c->positions + k) * c->bands;
        for (int b = 0; b < c->bands; b++) {
            value[b] = value_at(f, channel, c->hz[b], q);
            extent[0] = fmin(extent[0], value[b]); /* fmin and fmax leave NaN out */
            extent[1] = fmax(extent[1], value[b]);
        }
        int own_colour = p->files > 1 ? (int)(f - p->figures) : channel;
        int colour = own_colour < GC_PLOT_CHANNELS ? own_colour : GC_PLOT_CHANNELS;
        s[FIRST + k] = (gc_series){.label = named >> colour & 1 ? NULL : c->label[colour],
                                   .colour = gc_channel_colour(colour),
                                   .mark = GC_MARK_POINTS,
                                   .y = value};
        named |= 1U << colour;
    }
}

static void fill_panel(gc_band_charts *c, const gc_positions *p, gc_quantity q) {
    const gc_quantity_info *about = &gc_quantity_about[q];
    double extent[2] = {HUGE_VAL, -HUGE_VAL}, step = about->relative ? 0.2 : 5;
    fill_curves(c, p, q);
    fill_series(c, p, q, extent);
    if (!(extent[0] <= extent[1]))
        extent[0] = extent[1] = 0;
    gc_panel *panel = &c->panel[q];
    *panel = (gc_panel){.title = c->curve[q].title,
                        .x_label = "Hz",
                        .y_label = about->unit,
                        .logarithmic = true,
                        .octaves = true,
                        .x_range = {c->hz[0] / 1.3, c->hz[c->bands - 1] * 1.3},
                        .count = FIRST + c->positions + (c->positions > 1), /* a single position is its mean */
                        .steps = c->bands,
                        .x = c->hz,
                        .series = c->series + q * (OTHERS + c->positions)};
    panel->y_range[0] = about->relative || q == GC_D50 ? 0 : step * floor((extent[0] - 1) / step);
    panel->y_range[1] = q == GC_D50 ? 100 : step * ceil((extent[1] * (about->relative ? 1.06 : 1) + step / 5) / step);
}

/* Writes the entry of colour `k` in the key: a file's name, or a channel where there is one file. */
static void write_label(const gc_positions *p, int k, char *label, size_t room) {
    if (p->files == 1 || k == GC_PLOT_CHANNELS) {
        (void)snprintf(label, room,
                       p->files > 1           ? "other files"
                       : k < GC_PLOT_CHANNELS ? "channel %d"
                                              : "from %d on",
                       k + 1);
    } else if (k < p->files) {
        gc_visible(label, room, gc_file_name(p->figures[k].path));
    }
}

gpuconv_status gc_band_charts_new(const gc_positions *p, gc_band_charts **charts, gpuconv_error *error) {
    gc_band_charts *c = *charts = gc_calloc(1, sizeof *c);
    const gc_figures *widest = gc_positions_widest(p);
    if (!c)
        return gc_fail_memory(error, "the drawing");
    c->bands = widest->bands - 1;
    c->positions = gc_positions_count(p);
    c->series = gc_calloc((int64_t)GC_BAND_PANELS * (OTHERS + c->positions), (int64_t)sizeof *c->series);
    c->value = gc_calloc((int64_t)GC_BAND_PANELS * c->positions * c->bands, (int64_t)sizeof *c->value);
    if (!c->series || !c->value) {
        gc_band_charts_free(c);
        *charts = NULL;
        return gc_fail_memory(error, "the drawing");
    }
    for (int b = 0; b < c->bands; b++)
        c->hz[b] = widest->figure[b + 1].band.nominal;
    for (int k = 0; k <= GC_PLOT_CHANNELS; k++)
        write_label(p, k, c->label[k], sizeof c->label[k]);
    for (int q = 0; q < GC_BAND_PANELS; q++)
        fill_panel(c, p, (gc_quantity)q);
    return GPUCONV_OK;
}

void gc_band_charts_free(gc_band_charts *c) {
    if (!c)
        return;
    free(c->series);
    free(c->value);
    free(c);
}

const gc_panel *gc_band_charts_panels(const gc_band_charts *c) {
    return c->panel;
}

gpuconv_status gc_band_charts_draw(const gc_positions *p, const char *plot, gpuconv_error *error) {
    gc_band_charts *charts;
    gpuconv_status status = gc_band_charts_new(p, &charts, error);
    if (status)
        return status;
    status = gc_plot_panels(gc_band_charts_panels(charts), GC_BAND_PANELS, 2, plot, error);
    gc_band_charts_free(charts);
    return status;
}
