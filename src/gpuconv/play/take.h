/* A take: plays samples and records the inputs at the same time. */
#ifndef GPUCONV_PLAY_TAKE_H
#define GPUCONV_PLAY_TAKE_H

#include "device.h"

#include <stdbool.h>

typedef struct gc_take_config {
    gc_sound_choice sound;
    const char *output_device, *input_device; /* as in gc_sound_config */
    int output;                               /* channel that plays, from 0; those before it are silent */
    int inputs;                               /* channels that are recorded */
    double rate;
    int block; /* frames per callback; 0: the device chooses */
    const float *samples;
    int64_t played, recorded;   /* frames; recorded >= played */
    int64_t lead;               /* first frames, in which gaps do no harm: devices often report some at the beginning */
    const volatile int *cancel; /* NULL: none */
} gc_take_config;

typedef struct gc_take {
    float *samples;    /* inputs x recorded, planar; freed by the caller */
    int64_t xruns;     /* underflows and overflows that the device reported after the lead */
    int64_t nonfinite; /* samples that were NaN or infinite; they are 0 */
} gc_take;

/* Plays and records; returns when all is recorded. @return UNSUPPORTED (no sound in this build), DEVICE (also if the
 * device stops delivering), MEMORY, CANCELLED */
gpuconv_status gc_take_record(const gc_take_config *config, gc_take *take, gpuconv_error *error);

#endif
