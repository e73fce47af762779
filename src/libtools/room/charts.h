/*
 * Drawings of responses: decay, decay by bands, spectrogram, waterfall, frequency response, group delay; and of
 * parameters by band: T20, T30, EDT, C80, D50 and level of all positions, their mean and standard deviation, and the
 * just noticeable difference from the mean as an area.
 */
#ifndef GPUCONV_ROOM_CHARTS_H
#define GPUCONV_ROOM_CHARTS_H

#include "figures.h"
#include "libgpuconv/report/plot.h"

/* ---- A response -------------------------------------------------------------------------------------------------- */

enum { GC_CHARTS_PANELS = 6, GC_CHARTS_FILES = 4 /* side by side in a drawing */ };

typedef struct gc_charts gc_charts;

/* Analyses responses for drawings with the same axes, into charts[0] .. charts[count - 1], which are NULL before; they
 * are freed also after a failure. @param smoothing width of the smoothing in octaves, such as 1.0 / 6; 0: none
 * @return MEMORY, CANCELLED */
gpuconv_status gc_charts_new_all(const gc_figures *figures, int count, double smoothing, gc_charts **charts,
                                 gpuconv_error *error);
void gc_charts_free(gc_charts *charts);

/* Fills the panels, which point into `charts`. */
void gc_charts_panels(const gc_charts *charts, gc_panel panel[GC_CHARTS_PANELS]);

/* Draws up to GC_CHARTS_FILES responses: one as two columns, several as one column each, on the same scales.
 * @return any status of gc_plot_panels */
gpuconv_status gc_charts_draw(const gc_figures *figures, int count, double smoothing, const char *plot,
                              gpuconv_error *error);

/* ---- Parameters by band ------------------------------------------------------------------------------------------ */

enum { GC_BAND_PANELS = 6 };

typedef struct gc_band_charts gc_band_charts;

/* Computes the curves. The files must have bands. @return MEMORY */
gpuconv_status gc_band_charts_new(const gc_positions *positions, gc_band_charts **charts, gpuconv_error *error);
void gc_band_charts_free(gc_band_charts *charts);

/* Returns the panels, which live as long as `charts`. */
const gc_panel *gc_band_charts_panels(const gc_band_charts *charts);

/* Draws them into a file. @return any status of gc_plot_panels */
gpuconv_status gc_band_charts_draw(const gc_positions *positions, const char *plot, gpuconv_error *error);

#endif
