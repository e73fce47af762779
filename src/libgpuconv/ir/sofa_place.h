/* Where a source is as a listener hears it: places and orientations of a SOFA file, relative to the head. */
#ifndef GC_IR_SOFA_PLACE_H
#define GC_IR_SOFA_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* Places of one kind: a row of three values for each measurement (or emitter), or one row for all; count 0: none. */
typedef struct gc_places {
    int64_t count; /* of values */
    const float *value;
    bool spherical; /* degrees, degrees, metres instead of x, y, z in metres */
} gc_places;

/* The places of a file. The emitters are relative to the source, and without any the source is one itself. */
typedef struct gc_room {
    gc_places source, emitter, listener, view, up;
} gc_room;

/* Computes where an emitter is, from the listener of a measurement: along the axes of the room, or `turned` into those
 * of the head (x to the front, y to the left, z up). In metres. */
void gc_room_locate(const gc_room *room, int64_t measurement, int64_t emitter, bool turned, double to[3]);

#endif
