/* Drawing of a sound before and after a convolution. */
#ifndef GC_FILE_DRAW_H
#define GC_FILE_DRAW_H

#include "gpuconv.h"

typedef struct gc_drawing {
    const char *input, *raw; /* as in gpuconv_job */
    const char *output, *response;
    const char *plot; /* file of the drawing; NULL: into memory */
} gc_drawing;

/* Draws waveform, spectrogram and spectrum of input and output on the same scales, and the decay of the response.
 * @param svg gets the panels as of gc_plot_panels_svg if drawing->plot is NULL; freed by the caller
 * @return ARGUMENT, UNSUPPORTED (no gnuplot), FILE, MEMORY, CANCELLED */
gpuconv_status gc_draw_files(const gc_drawing *drawing, const gpuconv_ir *ir, char **svg, gpuconv_error *error);

#endif
