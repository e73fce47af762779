/* Paths: where the sources of an input are at any time. */
#ifndef GC_SPACE_PATH_H
#define GC_SPACE_PATH_H

#include "track.h"

struct gpuconv_path {
    int channels;
    bool ambisonic;  /* the channels are those of ambisonics, and have no direction */
    bool metres;     /* in a room: x, y and z */
    gc_track *track; /* of each channel: azimuth, elevation and distance in degrees, degrees and metres; or x, y, z */
    gc_track_text text;
};

/* Writes the position of a channel at a time: x to the front, y to the left, z up, in metres. The values of the track
 * are each linear between two rows. */
void gc_path_at(const gpuconv_path *path, double seconds, int channel, double at[3]);

/* Turns azimuth, elevation and distance into metres along the axes. */
void gc_path_point(const double place[3], double at[3]);

/* Writes the least and the largest distance of all channels. */
void gc_path_distances(const gpuconv_path *path, double *least, double *most);

#endif
