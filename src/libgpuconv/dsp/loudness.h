/* Integrated loudness by ITU-R BS.1770, measured by libebur128. */
#ifndef GC_DSP_LOUDNESS_H
#define GC_DSP_LOUDNESS_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stdint.h>

/* Measures `frames` frames; frame i of channel c is channel[c][i * stride]: stride 1 for planar samples, the number of
 * channels for interleaved ones. *lufs: loudness units relative to full scale, -infinity if no block is above the gate.
 * @return false: no memory, or libebur128 does not support the rate or the number of channels */
bool gc_loudness(const float *const *channel, int64_t stride, int channels, int64_t frames, double rate, double *lufs);

/* Measures the loudness of n samples of one channel as a power; 0 if no block is above the gate. @return MEMORY,
 * UNSUPPORTED (a build without libebur128) */
gpuconv_status gc_loudness_power(const double *samples, int64_t n, double rate, double *power, gpuconv_error *error);

#endif
