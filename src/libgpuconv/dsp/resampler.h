/* Streaming sample rate conversion of interleaved samples (soxr, high quality, linear phase). */
#ifndef GC_DSP_RESAMPLER_H
#define GC_DSP_RESAMPLER_H

#include <stdint.h>

typedef struct gc_resampler gc_resampler;

/* Creates a resampler. @return NULL without memory */
gc_resampler *gc_resampler_new(double from, double to, int channels);
void gc_resampler_free(gc_resampler *resampler);

/* Consumes `frames` frames of `in` (NULL: end of the signal) and writes up to `room` output frames. All input is
 * consumed if room >= frames x to / from + 4096. @return the frames that were written, or -1 on failure */
int64_t gc_resampler_process(gc_resampler *resampler, const float *in, int64_t frames, float *out, int64_t room);

/* Resets the state, to begin an unrelated signal. */
void gc_resampler_clear(gc_resampler *resampler);

#endif
