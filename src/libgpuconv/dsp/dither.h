/* Conversion of interleaved floats to a file's sample type, with or without dither. */
#ifndef GC_DSP_DITHER_H
#define GC_DSP_DITHER_H

#include "pcm.h"

#include <stdbool.h>

typedef struct gc_dither {
    gc_pcm format;
    bool enabled; /* triangular dither of +-1 LSB (Lipshitz, Wannamaker & Vanderkooy, JAES 40 (1992), 355) */
    uint64_t state;
} gc_dither;

/* Initialises the state with a fixed seed: the same samples always give the same bytes. Floats are never dithered. */
gc_dither gc_dither_begin(gc_pcm format, bool enabled);

/* Converts `n` samples; the dither is added to `samples` in place. Rounds, clamps and counts as gc_pcm_pack. */
void gc_dither_pack(gc_dither *dither, float *samples, int64_t n, void *raw, gc_pcm_overs *overs);

#endif
