/* Triangular dither before rounding: mean and power of the quantisation error become independent of the signal. */
#include "dither.h"

#include "libgpuconv/core/random.h"
#include "simd.h"

#include <math.h>

gc_dither gc_dither_begin(gc_pcm format, bool enabled) {
    return (gc_dither){.format = format, .enabled = enabled && format.container != GC_F32, .state = 1};
}

/* Returns the difference of two uniform numbers in [0, 1]: the halves of one random number. */
static float triangular_noise(uint64_t *state) {
    uint64_t z = gc_random_bits(state);
    return (float)(uint32_t)(z >> 32) * 0x1p-32f - (float)(uint32_t)z * 0x1p-32f;
}

void gc_dither_pack(gc_dither *d, float *samples, int64_t n, void *raw, gc_pcm_overs *overs) {
    float step = ldexpf(1.0f, 1 - d->format.bits);
    for (int64_t i = 0; d->enabled && i < n; i++)
        samples[i] += step * triangular_noise(&d->state);
    gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){d->format, raw, overs}, (const float *const *)&samples, 0, 1, n);
}
