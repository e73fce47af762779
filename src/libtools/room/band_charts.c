/* Curves of the parameters over the bands. A position has the colour of its file, or of its channel where there is one
 * file; several positions are thin, and their mean is drawn with bars of one standard deviation. */
#include "band_charts.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        const char *slash = strrchr(p->figures[k].path, '/');
        gc_visible(label, room, slash ? slash + 1 : p->figures[k].path);
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
