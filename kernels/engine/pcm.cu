/* PCM conversion on the device: a thread a sample, so that the interleaved side is read or written in one piece and the
 * planar side in pieces of a warp's frames. */
#include "engine.h"

namespace {

enum { BLOCK = 256 };

__device__ __forceinline__ float load(const void *raw, gc_container container, int64_t i) {
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

__global__ void unpack(gc_container container, const void *raw, int channels, int64_t given, int64_t frames,
                       float *planar, int64_t stride) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= frames * channels)
        return;
    int64_t frame = i / channels;
    int channel = (int)(i - frame * channels);
    planar[channel * stride + frame] = frame < given ? load(raw, container, i) : 0.0f;
}

/* The same rounding, clamping and NaN rule as src/dsp/pcm.c. */
__device__ __forceinline__ int quantize(float x, float scale, int shift, bool *clipped) {
    float v = rintf(x * scale);
    *clipped = !(v < scale) || v < -scale;
    if (!(v < scale))
        return v >= scale ? (int)(0x80000000u - (1u << shift)) : 0;
    return v < -scale ? (int)0x80000000u : (int)((unsigned)(int)v << shift);
}

__global__ void pack(gc_pcm format, float scale, const float *planar, int64_t stride, int channels, int64_t frames,
                     void *raw, gck_overs *overs) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    bool mine = i < frames * channels, clipped = false;
    float x = 0.0f;
    if (mine) {
        int64_t frame = i / channels;
        x = planar[(i - frame * channels) * stride + frame];
        if (format.container == GC_F32) {
            ((float *)raw)[i] = x;
        } else {
            int v = quantize(x, scale, 32 - format.bits, &clipped);
            if (format.container == GC_S16) {
                ((short *)raw)[i] = (short)(v >> 16);
            } else if (format.container == GC_S24) {
                unsigned char *p = (unsigned char *)raw + 3 * i;
                p[0] = (unsigned char)(v >> 8);
                p[1] = (unsigned char)(v >> 16);
                p[2] = (unsigned char)(v >> 24);
            } else {
                ((int *)raw)[i] = v;
            }
        }
    }
    /* One atomic a warp at most, and none that would change nothing. NaN counts as clipped, not as peak. */
    unsigned peak = __float_as_uint(fabsf(x));
    peak = peak > 0x7f800000u ? 0u : peak;
    for (int d = 16; d > 0; d /= 2)
        peak = max(peak, __shfl_xor_sync(0xffffffffu, peak, d));
    unsigned count = __popc(__ballot_sync(0xffffffffu, clipped));
    if (threadIdx.x % 32 == 0) {
        if (peak > *(volatile unsigned *)&overs->peak)
            atomicMax(&overs->peak, peak);
        if (count)
            atomicAdd(&overs->clipped, (unsigned long long)count);
    }
}

__global__ void carry(const float *now, float *next, int64_t stride, int64_t chunk, int64_t history) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, channel = (int64_t)blockIdx.y * stride;
    if (i < history)
        next[channel + i - history] = now[channel + chunk + i - history];
}

unsigned blocks_of(int64_t n) {
    return (unsigned)((n + BLOCK - 1) / BLOCK);
}

} // namespace

cudaError_t gck_unpack(gc_pcm format, const void *raw, int channels, int64_t given, int64_t frames, float *planar,
                       int64_t stride, cudaStream_t stream) {
    unpack<<<blocks_of(frames * channels), BLOCK, 0, stream>>>(format.container, raw, channels, given, frames, planar,
                                                               stride);
    return cudaGetLastError();
}

cudaError_t gck_pack(gc_pcm format, const float *planar, int64_t stride, int channels, int64_t frames, void *raw,
                     gck_overs *overs, cudaStream_t stream) {
    float scale = (float)(1u << (format.bits - 1));
    pack<<<blocks_of(frames * channels), BLOCK, 0, stream>>>(format, scale, planar, stride, channels, frames, raw,
                                                             overs);
    return cudaGetLastError();
}

cudaError_t gck_carry(const float *now, float *next, int64_t stride, int channels, int64_t chunk, int64_t history,
                      cudaStream_t stream) {
    if (history == 0)
        return cudaSuccess;
    carry<<<dim3(blocks_of(history), channels), BLOCK, 0, stream>>>(now, next, stride, chunk, history);
    return cudaGetLastError();
}
