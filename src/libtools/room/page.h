/*
 * A page about responses: figures, drawings, and a player that switches between sounds in place. The page is one file
 * that loads nothing from elsewhere.
 */
#ifndef GPUCONV_ROOM_PAGE_H
#define GPUCONV_ROOM_PAGE_H

#include "figures.h"
#include "gpuconv.h"
#include "libgpuconv/report/plot.h"

#include <stdio.h>

typedef struct gc_page_config {
    const char *path; /* of the page */
    const gc_figures *figures;
    int count; /* responses, at least 1 */
    const gc_figures_options *options;
    double smoothing;   /* as in gc_charts_new */
    const char *before; /* the sound before; NULL: the player plays the responses themselves */
    const char *after;  /* the sound after the convolution; NULL: `before` is convolved with each response */
} gc_page_config;

/* Checks, before a job begins, that the page can be written and drawn: gnuplot is installed, the folder exists and is
 * writable, and `sound` (NULL: none) can be read. @return UNSUPPORTED, FILE, MEMORY; any status of gc_reader_open */
gpuconv_status gc_page_check(const char *path, const char *sound, gpuconv_error *error);

/* Writes the page; an existing file is replaced atomically. @return any status of gc_reader_open, gpuconv_engine_new,
 * gc_charts_new and gc_plot_panels_svg; FILE, MEMORY, CANCELLED */
gpuconv_status gc_page_write(const gc_page_config *config, gpuconv_error *error);

/* Writes a page with drawings and a report below them. @return any status of gc_plot_panels_svg; FILE, MEMORY,
 * CANCELLED */
gpuconv_status gc_page_write_panels(const char *path, const char *title, const gc_panel *panels, int count,
                                    const gpuconv_report *report, gpuconv_error *error);

extern const char gc_page_style[], gc_page_script[]; /* page.css and page.js */

#endif
