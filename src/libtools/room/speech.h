/* Speech transmission index from an impulse response, IEC 60268-16:2020. */
#ifndef GPUCONV_ROOM_SPEECH_H
#define GPUCONV_ROOM_SPEECH_H

#include "acoustics.h"

enum { GC_SPEECH_BANDS = 7 /* octaves, 125 Hz to 8 kHz */, GC_SPEECH_MODULATIONS = 14 };

/* Levels at the listener in dB SPL. */
typedef struct gc_speech_levels {
    double speech; /* A-weighted level of the speech; NaN: levels are not considered */
    bool has_noise;
    double noise[GC_SPEECH_BANDS]; /* of each octave */
} gc_speech_levels;

typedef struct gc_speech {
    double sti;                  /* 0..1; NaN if a band is missing or silent */
    double mti[GC_SPEECH_BANDS]; /* modulation transfer index of each octave */
} gc_speech;

/* Computes the modulation transfer index of octave `k`, whose band the channel analysed last. */
void gc_speech_band(const gc_channel *channel, double rate, int k, const gc_speech_levels *levels, gc_speech *result);

/* Computes the index from those of the octaves; NaN stands for a missing one. */
void gc_speech_finish(gc_speech *result);

/* Returns the rating of an index: bad, poor, fair, good or excellent; "-" for NaN. */
const char *gc_speech_rating(double sti);

#endif
