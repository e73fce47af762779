/* Interleaved floats to what a file stores, with or without dither, where the engine hands out floats. */
#ifndef GC_DSP_DITHER_H
#define GC_DSP_DITHER_H

#include "pcm.h"

#include <stdbool.h>

typedef struct gc_dither {
    gc_pcm format;
    bool noise; /* triangular, two steps of the scale wide (Lipshitz, Wannamaker & Vanderkooy, JAES 40 (1992), 355) */
    uint64_t state;
} gc_dither;

/* The same samples give the same bytes again. */
gc_dither gc_dither_begin(gc_pcm format, bool noise);

/* `n` samples; those of an integer format are changed on the way. Rounding, clamping and counting as gc_pcm_pack. */
void gc_dither_pack(gc_dither *dither, float *samples, int64_t n, void *raw, gc_pcm_overs *overs);

#endif
