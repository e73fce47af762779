/* Parameters of two channels: interaural cross-correlation and lateral energy, ISO 3382-1:2009. */
#ifndef GPUCONV_ROOM_SPATIAL_H
#define GPUCONV_ROOM_SPATIAL_H

#include "acoustics.h"

/* Interaural cross-correlation coefficients, 0..1; NaN where a window has no energy. */
typedef struct gc_interaural {
    double all, early, late; /* from the direct sound on; its first 80 ms; after them */
} gc_interaural;

/* Two channels, windowed and transformed. */
typedef struct gc_ears gc_ears;

/* Prepares the response at the left and at the right ear. @return NULL if memory is exhausted or the work was cancelled
 */
gc_ears *gc_ears_new(const float *left, const float *right, int64_t frames, double rate);
void gc_ears_free(gc_ears *ears);

/* Computes the coefficients of a band (NULL: the whole spectrum). @return false: memory or cancelled */
bool gc_ears_band(gc_ears *ears, const gc_octave_band *band, gc_interaural *result);

/* Returns the early lateral energy fraction, 5 to 80 ms of `side` against 0 to 80 ms of `omni`, in the band that both
 * channels analysed last; NaN without energy. Both must have the same onset.
 * @param side of a figure-eight microphone whose null points to the source */
double gc_lateral_fraction(const gc_channel *omni, const gc_channel *side);

#endif
