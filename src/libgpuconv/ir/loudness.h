/* Loudness of a sound. */
#ifndef GC_IR_LOUDNESS_H
#define GC_IR_LOUDNESS_H

#include <stdbool.h>
#include <stdint.h>

/* Measures the integrated loudness in LUFS (ITU-R BS.1770, by libebur128); -infinity for silence.
 * @param samples interleaved
 * @return false if memory is exhausted or the rate or the number of channels is not supported */
bool gc_loudness(const float *samples, int channels, int64_t frames, double rate, double *lufs);

#endif
