/* Integrated loudness by ITU-R BS.1770, measured by libebur128. */
#ifndef GC_DSP_LOUDNESS_H
#define GC_DSP_LOUDNESS_H

#include <stdbool.h>
#include <stdint.h>

/* Measures planar samples. *lufs: loudness units relative to full scale. @return false: no block is above the gate, the
 * library has no memory, or it does not support the rate or the channels */
bool gc_loudness(const float *const *planar, int channels, int64_t frames, int rate, double *lufs);

#endif
