/* Room acoustic parameters of an impulse response by ISO 3382-1. */
#ifndef GPUCONV_ROOM_ACOUSTICS_H
#define GPUCONV_ROOM_ACOUSTICS_H

#include <stdbool.h>
#include <stdint.h>

/* Decay times are for 60 dB. A parameter is NaN where the decay above the noise is too short to determine it, or where
 * it is not defined. */
typedef struct gc_acoustics {
    double onset;  /* seconds until the direct sound, 20 dB below the peak */
    double edt;    /* early decay time, 0 to -10 dB */
    double t20;    /* -5 to -25 dB */
    double t30;    /* -5 to -35 dB */
    double c80;    /* clarity: energy of the first 80 ms against the later energy, dB; NaN without later energy */
    double d50;    /* definition: share of the energy in the first 50 ms, 0..1 */
    double centre; /* centre time, seconds */
    double noise;  /* noise floor after the decay, dB relative to the highest energy in 10 ms; -infinity: none found */
} gc_acoustics;

enum { GC_ACOUSTICS_CURVE = 600 };

/* Decay curves in dB at equal steps of time. */
typedef struct gc_decay {
    double step;                          /* seconds */
    double energy[GC_ACOUSTICS_CURVE];    /* of each step, relative to the largest */
    double remaining[GC_ACOUSTICS_CURVE]; /* Schroeder's curve, noise subtracted; NaN after its end */
} gc_decay;

/* Computes the parameters of one channel.
 * @param band  centre of an octave in Hz; 0: the whole spectrum
 * @param decay receives the curves; may be NULL
 * @return false if memory is exhausted or the work was cancelled */
bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *result,
                     gc_decay *decay);

#endif
