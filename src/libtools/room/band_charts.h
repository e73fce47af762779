/* Drawing of the parameters by band: T20, T30, EDT, C80, D50 and level of all positions, their mean and standard
 * deviation, and the just noticeable difference from the mean as an area. */
#ifndef GPUCONV_ROOM_BAND_CHARTS_H
#define GPUCONV_ROOM_BAND_CHARTS_H

#include "libgpuconv/report/plot.h"
#include "positions.h"

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
