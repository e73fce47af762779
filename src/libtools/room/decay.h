/* The decay of a response: noise floor, backward integration and straight lines through parts of the curve. */
#ifndef GPUCONV_ROOM_DECAY_H
#define GPUCONV_ROOM_DECAY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gc_noise_floor {
    int64_t cross; /* frame at which the decay meets the noise; the number of frames if it never does */
    double noise;  /* mean energy of a frame of noise; 0: none found */
    double most;   /* noise that the last frames of a decay without a floor may contain; else 0 */
    double slope;  /* of the decay in dB per frame, negative; 0: no decay found */
} gc_noise_floor;

/* Estimates slope and noise floor of the energies from the direct sound on. @return false: memory exhausted */
bool gc_decay_floor(const double *energy, int64_t frames, double rate, gc_noise_floor *found);

/* Returns the energy that an undisturbed decay would have after the crossing; 0 without noise. */
double gc_decay_rest(const gc_noise_floor *floor);

/* Schroeder's curve in dB. */
typedef struct gc_decay_curve {
    const double *level;
    int64_t count;
    double seconds; /* between two values */
    double start;   /* the level of 0 dB: all of the energy */
    double lowest;  /* below this level the curve is too close to the noise; -infinity without noise */
} gc_decay_curve;

/* A straight line through a part of the curve. */
typedef struct gc_decay_line {
    double time;         /* seconds for 60 dB; NaN where the curve does not reach the lower level */
    double nonlinearity; /* 1000 (1 - r^2), of the correlation coefficient r: ISO 3382-2:2008, annex B */
    double end; /* dB: level of the line where the curve ends or falls 10 dB below it; -infinity: in the noise */
} gc_decay_line;

/* Fits a line by least squares between two levels in dB relative to d->start (ISO 3382-1:2009, 5.3.3). */
gc_decay_line gc_decay_fit(const gc_decay_curve *d, double top, double bottom);

#endif
