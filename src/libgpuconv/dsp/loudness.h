/* Integrated loudness by ITU-R BS.1770, measured by libebur128. */
#ifndef GC_DSP_LOUDNESS_H
#define GC_DSP_LOUDNESS_H

#include <stdbool.h>
#include <stdint.h>

/* Measures `frames` frames; frame i of channel c is channel[c][i * stride]: stride 1 for planar samples, the number of
 * channels for interleaved ones. *lufs: loudness units relative to full scale, -infinity if no block is above the gate.
 * @return false: no memory, or libebur128 does not support the rate or the number of channels */
bool gc_loudness(const float *const *channel, int64_t stride, int channels, int64_t frames, double rate, double *lufs);

#endif
