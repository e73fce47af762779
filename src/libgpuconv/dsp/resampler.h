/* Sound from one rate to another as it comes, interleaved (soxr, high quality, linear phase). */
#ifndef GC_DSP_RESAMPLER_H
#define GC_DSP_RESAMPLER_H

#include <stdint.h>

typedef struct gc_resampler gc_resampler;

/* NULL: no memory. */
gc_resampler *gc_resampler_new(double from, double to, int channels);
void gc_resampler_free(gc_resampler *resampler);

/* Takes `frames` frames (NULL: the sound has ended) and gives up to `room` of those that are ready; -1: it failed. All
 * are taken where room is frames x to / from + 4096 and more. */
int64_t gc_resampler_process(gc_resampler *resampler, const float *in, int64_t frames, float *out, int64_t room);

/* What comes next has nothing to do with what came. */
void gc_resampler_clear(gc_resampler *resampler);

#endif
