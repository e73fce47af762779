/* Responses from the channels of an input to the receivers of a SOFA set: single directions, loudspeaker layouts and
 * ambisonics. */
#ifndef GC_IR_SPATIAL_H
#define GC_IR_SPATIAL_H

#include "sofa.h"

/* The directions of the channels of an input. */
typedef struct gc_directions {
    int count;
    double at[GC_MAX_CHANNELS][3]; /* x front, y left, z up; metres */
} gc_directions;

/* Parses AZIMUTH,ELEVATION[,DISTANCE] in degrees and metres: azimuth -360 to 360, to the left; elevation -90 to 90; the
 * distance 0.01 to 1000, 1 by default. Returns false for anything else. */
bool gc_direction_parse(const char *text, double at[3]);

/* Fills the directions of a layout: mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4 (ITU-R BS.2051, in the order of WAV files), or
 * of a text file with one direction a line, # begins a comment. Returns FILE, FORMAT, ARGUMENT (no such name). */
gpuconv_status gc_directions_of_layout(const char *layout, gc_directions *directions, gpuconv_error *error);

/* Returns whether the channels of a layout (NULL: none) are those of ambisonics and no directions. */
bool gc_spatial_is_ambisonic(const char *layout);

/* Makes the routed response from `inputs` channels to the receivers of a set: of the preparation, direction or
 * speakers, the turn of the head, interpolation and decoder. `moves`: other responses of the same form will follow, for
 * other orientations of the head. Returns ARGUMENT, FILE, FORMAT, TOPOLOGY, UNSUPPORTED (TRIANGLE without the meshes of
 * the set), MEMORY, CANCELLED. */
gpuconv_status gc_spatial_make(const gpuconv_sofa *sofa, const gpuconv_preparation *preparation, bool moves, int inputs,
                               gpuconv_ir **ir, gpuconv_error *error);

#endif
