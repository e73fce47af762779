/* Conversion of single samples between the formats of files and floats. */
#ifndef GC_KERNELS_PCM_CUH
#define GC_KERNELS_PCM_CUH

#include "kernels.h"

/* Returns sample i of `raw` as a float; full scale is 1. */
__device__ __forceinline__ float load_sample(const void *raw, gc_container container, int64_t i) {
    switch (container) {
    case GC_S16:
        return (float)((const short *)raw)[i] * 0x1p-15f;
    case GC_S24: {
        const unsigned char *p = (const unsigned char *)raw + 3 * i;
        return (float)(int)((unsigned)p[0] << 8 | (unsigned)p[1] << 16 | (unsigned)p[2] << 24) * 0x1p-31f;
    }
    case GC_S32:
        return (float)((const int *)raw)[i] * 0x1p-31f;
    default:
        return ((const float *)raw)[i];
    }
}

/* Returns x as an integer sample in the upper bits of an int, `shift` bits unused. Rounds, clips and treats NaN exactly
 * as src/libgpuconv/dsp/pcm_kernels.c does. scale: 2^(bits - 1). */
__device__ __forceinline__ int quantize(float x, float scale, int shift, bool *clipped) {
    float v = rintf(x * scale);
    *clipped = !(v < scale) || v < -scale;
    if (!(v < scale))
        return v >= scale ? (int)(0x80000000u - (1u << shift)) : 0;
    return v < -scale ? (int)0x80000000u : (int)((unsigned)(int)v << shift);
}

/* Stores v, as `quantize` returned it, as sample i. */
__device__ __forceinline__ void store_sample(void *raw, gc_container container, int64_t i, int v) {
    if (container == GC_S16) {
        ((short *)raw)[i] = (short)(v >> 16);
    } else if (container == GC_S24) {
        unsigned char *p = (unsigned char *)raw + 3 * i;
        p[0] = (unsigned char)(v >> 8);
        p[1] = (unsigned char)(v >> 16);
        p[2] = (unsigned char)(v >> 24);
    } else {
        ((int *)raw)[i] = v;
    }
}

#endif
