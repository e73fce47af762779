/*
 * Room acoustic parameters of an impulse response by ISO 3382-1:2009 and ISO 3382-2:2008.
 */
#ifndef GPUCONV_ROOM_ACOUSTICS_H
#define GPUCONV_ROOM_ACOUSTICS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- Octave and third-octave band filters (IEC 61260-1:2014), as functions of frequency -------------------------- */

#define GC_J ((double complex)_Complex_I) /* the imaginary unit; I of complex.h is a float */

enum { GC_OCTAVE_BANDS = 40 }; /* at most, of gc_octave_bands */

typedef struct gc_octave_band {
    double nominal;   /* name of the band in Hz: 63, 125, ... */
    double centre;    /* exact mid-band frequency in Hz */
    double low, high; /* band-edge frequencies in Hz */
    int order;        /* of the Butterworth lowpass that is transformed to the band: 3 or 7 */
} gc_octave_band;

/* Lists the bands whose upper edge is below half the rate: octaves from 63 Hz to 16 kHz, or third-octaves from 50 Hz
 * to 20 kHz.
 * @param per_octave 1 or 3
 * @return their number, at most GC_OCTAVE_BANDS */
int gc_octave_bands(int per_octave, double rate, gc_octave_band band[GC_OCTAVE_BANDS]);

/* Returns the octave with this nominal frequency. */
gc_octave_band gc_octave_at(double nominal);

/* Returns octave k of the speech transmission index, 0: 125 Hz to 6: 8 kHz. Its filter is steeper, because speech has
 * much less energy in the upper octaves than in those below them. */
gc_octave_band gc_octave_of_speech(int k);

/* Returns the frequency response of the filter at a frequency > 0: a Butterworth bandpass, which lies
 * within the limits of class 1 and has unity gain in the band. Conjugated, it is the filter reversed in time. */
double complex gc_octave_response(const gc_octave_band *band, double hz);

/* The autocorrelation of the filter's impulse response for lags >= 0, with half its value at lag 0. */
typedef struct gc_octave_correlation {
    double complex pole[14], residue[14];
    int poles; /* twice the order */
} gc_octave_correlation;

gc_octave_correlation gc_octave_correlate(const gc_octave_band *band);

/* Returns the Fourier transform of the one-sided autocorrelation. Its real part is half of |response|^2. */
double complex gc_octave_one_sided(const gc_octave_correlation *correlation, double hz);

/* ---- The decay of a response: noise floor, backward integration, straight lines ---------------------------------- */

/* A straight line through a part of the curve. */
typedef struct gc_decay_line {
    double time;         /* seconds for 60 dB; NaN where the curve does not reach the lower level */
    double nonlinearity; /* 1000 (1 - r^2), of the correlation coefficient r: ISO 3382-2:2008, annex B */
    double end; /* dB: level of the line where the curve ends or falls 10 dB below it; -infinity: in the noise */
} gc_decay_line;

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* The causes other than the room that decide a parameter. */
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
    double fall;           /* -5 to -25 dB, or to 5 dB above the noise, if it is at least 8 dB below */
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
