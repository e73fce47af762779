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
    gpuconv_interpolate interpolate;
    bool by_distance;      /* a direction's gain is the measured distance divided by the wanted one */
    gpuconv_decode decode; /* of ambisonics */
    bool diffuse_eq;
    bool moves; /* other responses of the same form will follow, for other orientations of the head */
} gc_scene;

/* Returns whether the channels are those of ambisonics and no directions. */
bool gc_spatial_is_ambisonic(const gc_scene *scene);

/* Makes the routed response from `inputs` channels to the receivers of a set. Returns ARGUMENT, FILE, FORMAT, TOPOLOGY,
 * UNSUPPORTED (TRIANGLE without the meshes of the set), MEMORY, CANCELLED. */
gpuconv_status gc_spatial_make(const gpuconv_sofa *sofa, const gc_scene *scene, int inputs, gpuconv_ir **ir,
                               gpuconv_error *error);

#endif
