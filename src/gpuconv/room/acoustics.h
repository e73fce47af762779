/* What ISO 3382-1 reads from an impulse response. */
#ifndef GPUCONV_ROOM_ACOUSTICS_H
#define GPUCONV_ROOM_ACOUSTICS_H

#include <stdbool.h>
#include <stdint.h>

/* Times in seconds, for a fall of 60 dB; NaN where the response does not fall far enough above its noise. */
typedef struct gc_acoustics {
    double onset;  /* seconds until the direct sound: 20 dB under the peak */
    double edt;    /* early decay time, 0 to -10 dB */
    double t20;    /* -5 to -25 dB */
    double t30;    /* -5 to -35 dB */
    double c80;    /* clarity: energy of the first 80 ms against the rest, dB */
    double d50;    /* definition: share of the first 50 ms, 0..1 */
    double centre; /* centre time, seconds */
    double noise; /* of the floor behind the decay, dB against the peak of energy in 10 ms; -infinity: none was found */
} gc_acoustics;

enum { GC_ACOUSTICS_CURVE = 600 };

/* The decay as it was read: levels at equal steps of time, dB. */
typedef struct gc_decay {
    double step;                       /* seconds */
    double energy[GC_ACOUSTICS_CURVE]; /* of each step, against the loudest */
    double left[GC_ACOUSTICS_CURVE];   /* Schroeder's curve, noise taken off; NaN behind its end */
} gc_decay;

/* Of one channel, `band` being the middle of an octave in Hz or 0 for all of it. `decay` may be NULL. False: no
 * memory. */
bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *result,
                     gc_decay *decay);

#endif
