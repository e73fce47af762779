/* Drawings with gnuplot. Titles and labels may be any text: control characters are shown as escapes, long texts are
 * shortened in the middle. */
#ifndef GC_REPORT_PLOT_H
#define GC_REPORT_PLOT_H

#include "gpuconv.h"

#include <stdbool.h>

enum { GC_PLOT_SERIES = 12, GC_PLOT_CHANNELS = 4 /* with a colour of their own */ };

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

/* How a series of a panel is drawn. */
typedef enum gc_mark {
    GC_MARK_LINE,
    GC_MARK_THIN,   /* a thin line */
    GC_MARK_POINTS, /* a thin line with points */
    GC_MARK_BARS,   /* a line with points and bars from `low` to `high` */
    GC_MARK_AREA    /* the area between `low` and `high` */
} gc_mark;

typedef struct gc_series {
    const char *label;  /* NULL: none in the key */
    const char *colour; /* as "#1764ab" */
    gc_mark mark;
    const double *y, *low, *high; /* NaN leaves a gap */
} gc_series;

/* Colours with one meaning in all drawings: cool ones for channels, warm ones for bands. */
#define GC_COLOUR_MEAN "#d1462f"
#define GC_COLOUR_AREA "#dcdfe2"
#define GC_COLOUR_NOISE "#9aa2a9"
const char *gc_channel_colour(int channel);

/* Returns the colour of band k of `count`, from the lowest to the highest. */
const char *gc_band_colour(int band, int count);

/* One of several diagrams in a drawing. */
typedef struct gc_panel {
    const char *title, *x_label, *y_label;
    bool logarithmic, y_logarithmic; /* the x axis is one of frequency; the y axis */
    bool octaves;                    /* ticks at the octaves from 63 Hz */
    bool key_right;                  /* the key of many series stands beside the diagram, else below */
    double x_range[2], y_range[2];
    int count, steps; /* series, and values in each */
    const gc_series *series;
    const double *x;
    const float *image; /* instead of series: levels in dB, column by column, the lowest row first; or NULL. y_range is
                           in Hz, and the rows are at equal ratios of frequency */
    int columns, rows;
    double seconds;        /* extent of the image along x */
    double level_range[2]; /* dB, of the image's colours */
    bool waterfall;        /* draw the image as a surface over frequency and time: row r is at frequency x[r], column c
                              at time c seconds / columns */
} gc_panel;

/* Draws `count` panels row by row, `columns` per row. Otherwise as gc_plot_write. */
gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error);

/* Draws every panel into memory, as an SVG document of its own; each begins with GC_SVG_BEGIN. *svg is freed by the
 * caller. Fails with UNSUPPORTED, FILE, MEMORY or CANCELLED. */
gpuconv_status gc_plot_panels_svg(const gc_panel *panel, int count, char **svg, gpuconv_error *error);
#define GC_SVG_BEGIN "<?xml"

/* Write a script, data included, that makes gnuplot print the drawing on its standard output; for the fuzzer of names.
 * The caller checks ferror(to). */
void gc_script_plot(const gc_plot *plot, gc_plot_format format, FILE *to);
void gc_script_panels(const gc_panel *panel, int count, int columns, gc_plot_format format, FILE *to);

#endif
