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
 * Returns ARGUMENT, FILE, FORMAT, TOPOLOGY, MEMORY. */
gpuconv_status gc_spatial_make(const gc_sofa *sofa, const char *name, const gc_scene *scene, int inputs,
                               gpuconv_ir **ir, gpuconv_error *error);

#endif
