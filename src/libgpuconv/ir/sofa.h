/* Sets of measured responses: SOFA files (AES69), such as head-related impulse responses. */
#ifndef GC_IR_SOFA_H
#define GC_IR_SOFA_H

#include "object.h"

/* A set: one response for each measurement and receiver (ear), at the direction of its source. */
typedef struct gc_sofa {
    double rate;
    int64_t frames, lead; /* of every response, its delay included */
    int measurements, receivers;
    double *position; /* per measurement: x to the front, y to the left, z up; in metres */
    float *taps;      /* measurements x receivers x frames */
    double longest_delay;
    char conventions[128], title[128], listener[128];
} gc_sofa;

/* Reads a regular file. Returns FILE, FORMAT, MEMORY, CANCELLED. */
gpuconv_status gc_sofa_load(const char *path, gc_sofa **sofa, gpuconv_error *error);
void gc_sofa_free(gc_sofa *sofa);

/* Returns whether a file of this name is read as a SOFA file. */
bool gc_is_sofa(const char *path);

/* Returns the number of the measurement whose direction is nearest to that of `at` (x, y, z), and among those of the
 * same direction nearest in distance. *degrees gets the angle between them. */
int gc_sofa_nearest(const gc_sofa *sofa, const double at[3], double *degrees);

/* Returns the taps of a measurement and a receiver. */
static inline const float *gc_sofa_taps(const gc_sofa *sofa, int measurement, int receiver) {
    return sofa->taps + ((int64_t)measurement * sofa->receivers + receiver) * sofa->frames;
}

/* Makes an empty set with room for the given sizes. Returns NULL without memory. */
gc_sofa *gc_sofa_blank(int measurements, int receivers, int64_t frames);

#endif
