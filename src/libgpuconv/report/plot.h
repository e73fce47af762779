/* Drawings with gnuplot. Titles and labels may be any text: control characters are shown as escapes, long texts are
 * shortened in the middle. */
#ifndef GC_REPORT_PLOT_H
#define GC_REPORT_PLOT_H

#include "gpuconv.h"

#include <stdbool.h>

enum { GC_PLOT_SERIES = 12 };

typedef enum gc_plot_format { GC_PLOT_SVG, GC_PLOT_PNG, GC_PLOT_PDF, GC_PLOT_FORMATS } gc_plot_format;

/* A diagram of several series over one x axis. Both axes are logarithmic. NaN leaves a gap. */
typedef struct gc_plot {
    const char *title, *x_label, *y_label;
    int series, steps; /* number of series, and of values in each */
    const char *label[GC_PLOT_SERIES];
    bool points[GC_PLOT_SERIES]; /* draw points instead of a line */
    const double *x, *y[GC_PLOT_SERIES];
} gc_plot;

/* Draws into a file whose name ends in .svg, .png or .pdf. An existing file is replaced atomically. Kills gnuplot when
 * the thread's cancel flag is raised. Fails with ARGUMENT (another name), UNSUPPORTED (no gnuplot), FILE, MEMORY or
 * CANCELLED. */
gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, gpuconv_error *error);

/* Checks, before a job begins, that a drawing can be written: the name ends in .svg, .png or .pdf, gnuplot is
 * installed and the folder is writable. Fails with ARGUMENT, UNSUPPORTED (no gnuplot), FILE or MEMORY. */
gpuconv_status gc_plot_check(const char *path, gpuconv_error *error);

/* One of several diagrams in a drawing. */
typedef struct gc_panel {
    const char *title, *x_label, *y_label;
    bool logarithmic; /* the x axis */
    double x_range[2], y_range[2];
    int series, steps; /* with `filled` the two series are the edges of a filled band */
    bool filled;
    const char *label[GC_PLOT_SERIES];
    const double *x, *y[GC_PLOT_SERIES];
    const float *image; /* instead of lines: levels in dB, column by column, the lowest row first; or NULL */
    int columns, rows;
    double seconds;        /* extent of the image along x */
    double level_range[2]; /* dB, of the image's colours */
    bool waterfall;        /* draw the image as a surface over frequency and time: row r is at frequency x[r], column c
                              at time (c + 0.5) seconds / columns, and y_label is that of the time */
} gc_panel;

/* Draws `count` panels row by row, `columns` per row. Otherwise as gc_plot_write. */
gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error);

/* Draws the same into memory, as SVG. *svg is freed by the caller. Fails with UNSUPPORTED, FILE, MEMORY or CANCELLED.
 */
gpuconv_status gc_plot_panels_svg(const gc_panel *panel, int count, int columns, char **svg, gpuconv_error *error);

#endif
