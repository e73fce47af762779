/* Paths: where the sources of an input are at any time. */
#ifndef GC_SPACE_PATH_H
#define GC_SPACE_PATH_H

#include "gpuconv.h"

/* Rows of a time, and an azimuth, elevation and distance for each channel. */
struct gpuconv_path {
    int64_t count, room; /* rows, and for how many there is memory */
    int channels;
    double *seconds;   /* per row, rising */
    double *direction; /* rows x channels x 3: degrees, degrees, metres */
};

/* Writes the position of a channel at a time: x to the front, y to the left, z up, in metres. Azimuth, elevation and
 * distance are each linear between two rows; before the first row and after the last one they stay. */
void gc_path_at(const gpuconv_path *path, double seconds, int channel, double at[3]);

#endif
