/* Sample rate conversion (soxr, linear phase): of a whole channel in very high quality, and of a stream of interleaved
 * samples in high quality. */
#ifndef GC_DSP_RESAMPLER_H
#define GC_DSP_RESAMPLER_H

#include "gpuconv.h"

#include <stdint.h>

/* Writes `n` frames of the signal `from`, resampled to `ratio` times as many frames and multiplied by `gain`, and
 * leaves those of them unchanged that lie behind its end. @return MEMORY, CANCELLED, UNSUPPORTED (a build without
 * libsoxr) */
gpuconv_status gc_resample(const float *from, int64_t frames, double ratio, double gain, float *to, int64_t n,
                           gpuconv_error *error);

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
