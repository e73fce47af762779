/* Drawings through gnuplot, which is looked for when one is wanted. */
#ifndef GC_REPORT_PLOT_H
#define GC_REPORT_PLOT_H

#include "gpuconv.h"

#include <stdbool.h>

enum { GC_PLOT_SERIES = 8 };

/* Lines, or points, over one axis, both axes logarithmic; NaN leaves a gap. */
typedef struct gc_plot {
    const char *title, *x_label, *y_label;
    int series, steps;
    const char *label[GC_PLOT_SERIES];
    bool points[GC_PLOT_SERIES];
    const double *x, *y[GC_PLOT_SERIES];
} gc_plot;

/* To a file named .svg or .png. ARGUMENT for another name, UNSUPPORTED without gnuplot, FILE. */
gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, gpuconv_error *error);

/* Whether a drawing can have that name: .svg or .png. ARGUMENT. */
gpuconv_status gc_plot_check(const char *path, gpuconv_error *error);

/* One drawing of several on a sheet. */
typedef struct gc_panel {
    const char *title, *x_label, *y_label;
    bool logarithmic; /* the x axis */
    double x_range[2], y_range[2];
    int series, steps; /* lines over x; with `filled` the two series are a band's edges */
    bool filled;
    const char *label[GC_PLOT_SERIES];
    const double *x, *y[GC_PLOT_SERIES];
    const float *image; /* instead of lines: levels in dB, columns x rows, the lowest row first */
    int columns, rows;
    double seconds; /* how far along x the image reaches */
    double level_range[2];
} gc_panel;

/* Panels row by row, so many to a row. As gc_plot_write. */
gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error);

#endif
