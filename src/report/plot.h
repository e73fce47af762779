/* Drawings through gnuplot, which is looked for when one is wanted. */
#ifndef GC_REPORT_PLOT_H
#define GC_REPORT_PLOT_H

#include "../gpuconv.h"

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

#endif
