/* PCM conversion on the device: a thread a frame. A warp touches 32 neighbouring frames of every channel, whole lines
 * on the planar side and, over the turns of its loop, on the interleaved side too. */
#include "pcm.cuh"

namespace {

enum { BLOCK = 256 };

__global__ void unpack(gc_container container, const void *__restrict__ raw, int channels, int64_t given,
                       int64_t frames, float *__restrict__ planar, int64_t stride) {
    int64_t frame = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (frame >= frames)
        return;
    for (int c = 0; c < channels; c++)
        planar[c * stride + frame] = frame < given ? sample_of(raw, container, frame * channels + c) : 0.0f;
}

__global__ void pack(gc_pcm format, float scale, const float *__restrict__ planar, int64_t stride, int channels,
                     int64_t frames, void *__restrict__ raw, gck_overs *overs) {
    int64_t frame = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned peak = 0, count = 0;
    if (frame < frames) {
        for (int c = 0; c < channels; c++) {
            float x = planar[c * stride + frame];
            unsigned magnitude = __float_as_uint(fabsf(x));
            peak = magnitude <= 0x7f800000u ? max(peak, magnitude) : peak; /* NaN is no peak, but counts as clipped */
            if (format.container == GC_F32) {
                ((float *)raw)[frame * channels + c] = x;
            } else {
                bool clipped;
                save(raw, format.container, frame * channels + c, quantize(x, scale, 32 - format.bits, &clipped));
                count += clipped;
            }
        }
    }
    /* One atomic a warp at most, and none that would change nothing. */
    for (int d = 16; d > 0; d /= 2) {
        peak = max(peak, __shfl_xor_sync(0xffffffffu, peak, d));
        count += __shfl_xor_sync(0xffffffffu, count, d);
    }
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
    unpack<<<blocks_of(frames), BLOCK, 0, stream>>>(format.container, raw, channels, given, frames, planar, stride);
    return cudaGetLastError();
}

cudaError_t gck_pack(gc_pcm format, const float *planar, int64_t stride, int channels, int64_t frames, void *raw,
                     gck_overs *overs, cudaStream_t stream) {
    float scale = (float)(1u << (format.bits - 1));
    pack<<<blocks_of(frames), BLOCK, 0, stream>>>(format, scale, planar, stride, channels, frames, raw, overs);
    return cudaGetLastError();
}

cudaError_t gck_carry(const float *now, float *next, int64_t stride, int channels, int64_t chunk, int64_t history,
                      cudaStream_t stream) {
    if (history == 0)
        return cudaSuccess;
    carry<<<dim3(blocks_of(history), channels), BLOCK, 0, stream>>>(now, next, stride, chunk, history);
    return cudaGetLastError();
}
