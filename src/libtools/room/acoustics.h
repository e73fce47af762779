/* Room acoustic parameters of an impulse response by ISO 3382-1:2009 and ISO 3382-2:2008. */
#ifndef GPUCONV_ROOM_ACOUSTICS_H
#define GPUCONV_ROOM_ACOUSTICS_H

#include "octave_filter.h"

#include <stdbool.h>
#include <stdint.h>

/* What decides a parameter other than the room. */
typedef enum gc_doubt {
    GC_DOUBT_FILTER = 1,  /* bandwidth times decay time is below 4: the filter's own decay decides (ISO 3382-2, 7.3) */
    GC_DOUBT_NOISE20 = 2, /* impulse-to-noise ratio below 35 dB: T20 is doubtful (ISO 3382-1, 5.3.3) */
    GC_DOUBT_NOISE30 = 4, /* below 45 dB: T30 is doubtful */
    GC_DOUBT_NONLINEAR = 8, /* non-linearity above 10 per mille (ISO 3382-2, annex B) */
    GC_DOUBT_CURVED = 16,   /* curvature above 10 per cent (ISO 3382-2, annex B) */
    GC_DOUBT_END20 = 32,    /* the response ends less than 10 dB below the range of T20, 15 dB if noise may be there */
    GC_DOUBT_END30 = 64     /* below the range of T30 */
} gc_doubt;

/* Decay times are for 60 dB. A parameter is NaN where the decay above the noise is too short to determine it, or where
 * it is not defined. */
typedef struct gc_acoustics {
    double onset;          /* seconds until the direct sound, 20 dB below the peak */
    double edt;            /* early decay time, 0 to -10 dB */
    double t20;            /* -5 to -25 dB */
    double t30;            /* -5 to -35 dB */
    double nonlinearity20; /* per mille, of T20 */
    double nonlinearity30; /* per mille, of T30 */
    double curvature;      /* per cent: 100 (T30 / T20 - 1) */
    double c50, c80;       /* clarity: energy of the first 50 or 80 ms against the later energy, dB */
    double d50;            /* definition: share of the energy in the first 50 ms, 0..1 */
    double centre;         /* centre time, seconds */
    double noise;          /* noise floor after the decay, dB relative to the highest energy in 10 ms */
    double inr;            /* impulse-to-noise ratio, dB; +infinity: no noise found */
    double energy;         /* energy of the response in the band, sum of squares divided by the rate */
    unsigned doubt;        /* gc_doubt */
} gc_acoustics;

enum { GC_ACOUSTICS_CURVE = 600 };

/* Decay curves in dB at equal steps of time. */
typedef struct gc_decay {
    double step;                          /* seconds */
    double energy[GC_ACOUSTICS_CURVE];    /* of each step, relative to the largest */
    double remaining[GC_ACOUSTICS_CURVE]; /* Schroeder's curve, noise subtracted; NaN after its end */
} gc_decay;

/* One channel, prepared for the analysis of its bands. */
typedef struct gc_channel gc_channel;

/* Transforms a channel. @param onset frame of the direct sound; negative: found, 20 dB below the peak
 * @return NULL if memory is exhausted or the work was cancelled */
gc_channel *gc_channel_new(const float *taps, int64_t frames, double rate, int64_t onset);
void gc_channel_free(gc_channel *channel);

/* Returns the first frame within 20 dB of the peak of finite taps; 0 if they are silent. */
int64_t gc_channel_find_onset(const float *taps, int64_t frames);

/* Returns the frame of the direct sound. */
int64_t gc_channel_onset(const gc_channel *channel);

/* Computes the parameters of a band.
 * @param band  NULL: the whole spectrum
 * @param decay receives the curves; may be NULL
 * @return false if memory is exhausted or the work was cancelled */
bool gc_channel_band(gc_channel *channel, const gc_octave_band *band, gc_acoustics *result, gc_decay *decay);

/* Times after the direct sound from which energies are computed: 0, 5, 50 and 80 ms. */
enum { GC_FROM_ONSET, GC_FROM_5MS, GC_FROM_50MS, GC_FROM_80MS, GC_TIMES };

/* Returns the energies of the band of the last gc_channel_band, GC_TIMES values. */
const double *gc_channel_energies(const gc_channel *channel);

/* Returns the distribution over the frames of the energy of that band, from the beginning of the response to where
 * noise ends the decay; *count gets their number and *noise the noise of a frame, which they contain. Only slow changes
 * of the distribution have a meaning. */
const double *gc_channel_densities(const gc_channel *channel, int64_t *count, double *noise);

/* As gc_channel_new, gc_channel_band and gc_channel_free for one band. @param band nominal frequency of an octave in
 * Hz; 0: the whole spectrum */
bool gc_acoustics_of(const float *taps, int64_t frames, double rate, double band, gc_acoustics *result,
                     gc_decay *decay);

#endif
