/* Responses from the channels of an input to the receivers of a SOFA set: single directions, loudspeaker layouts and
 * ambisonics. */
#ifndef GC_IR_SPATIAL_H
#define GC_IR_SPATIAL_H

#include "sofa.h"

typedef struct gc_orientation {
    double yaw, pitch, roll; /* of the head in degrees: to the left, up, to the right */
} gc_orientation;

/* What the channels of an input are. */
typedef struct gc_scene {
    const char *direction; /* of a single channel: AZIMUTH,ELEVATION[,DISTANCE]; NULL: not given */
    const char *layout;    /* a name or a file (directions.h), or "ambisonic"; NULL: not given */
    gc_orientation head;
} gc_scene;

/* Makes the routed response from `inputs` channels to the receivers of a set. `name` is the set's, for messages.
 * Returns ARGUMENT, FILE, FORMAT, TOPOLOGY, MEMORY, CANCELLED. */
gpuconv_status gc_spatial_make(const gc_sofa *sofa, const char *name, const gc_scene *scene, int inputs,
                               gpuconv_ir **ir, gpuconv_error *error);

/* Returns whether each channel is a direction of its own, which gets the nearest measurement: not so for ambisonics. */
bool gc_spatial_has_directions(const gc_scene *scene);

/* Writes the number of the measurement of every channel, for a scene that has directions. Returns as gc_spatial_make.
 */
gpuconv_status gc_spatial_find(const gc_sofa *sofa, const char *name, const gc_scene *scene, int inputs,
                               int *measurement, gpuconv_error *error);

/* Makes the response from `inputs` channels that has the routes of one channel only: those of a measurement. Returns
 * MEMORY. */
gpuconv_status gc_spatial_make_channel(const gc_sofa *sofa, int measurement, int channel, int inputs, gpuconv_ir **ir,
                                       gpuconv_error *error);

#endif
