/*
 * PCM conversion between interleaved samples of a file format and planar floats, and the copy of the history.
 *
 *      unpack        planar[c][n] = raw[n channels + c] / full scale
 *      pack          raw[n channels + c] = round and clip(planar[c][n] full scale)
 *
 * One thread per frame, a loop over the channels. A warp accesses 32 adjacent frames of each channel: whole lines on
 * the planar side and, over the iterations of its loop, on the interleaved side too. The contracts of the launchers are
 * in kernels.h.
 */
#include "pcm.cuh"

namespace {

enum { BLOCK = 256 };

__global__ void unpack(gc_container container, const void *__restrict__ raw, int channels, int64_t raw_frames,
                       int64_t frames, float *__restrict__ planar, int64_t stride) {
    int64_t frame = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (frame >= frames)
        return;
    for (int c = 0; c < channels; c++)
        planar[c * stride + frame] = frame < raw_frames ? load_sample(raw, container, frame * channels + c) : 0.0f;
}

struct pcm_format {
    gc_pcm pcm;
    float scale; /* full scale */
};

__global__ void pack(pcm_format format, const float *__restrict__ planar, int64_t stride, int channels, int64_t frames,
                     void *__restrict__ raw, gck_overs *overs) {
    int64_t frame = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned peak = 0, count = 0;
    if (frame < frames) {
        for (int c = 0; c < channels; c++) {
            float x = planar[c * stride + frame];
            unsigned magnitude = __float_as_uint(fabsf(x));
            peak = magnitude <= 0x7f800000u ? max(peak, magnitude) : peak; /* NaN is not a peak but counts as clipped */
            if (format.pcm.container == GC_F32) {
                ((float *)raw)[frame * channels + c] = x;
            } else {
                bool clipped;
                store_sample(raw, format.pcm.container, frame * channels + c,
                             quantize(x, format.scale, 32 - format.pcm.bits, &clipped));
                count += clipped;
            }
        }
    }
    /* At most one atomic operation of each kind per warp, and none that would not change the value. */
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

__global__ void copy_history(const float *now, float *next, int64_t stride, int64_t chunk, int64_t history) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, channel = (int64_t)blockIdx.y * stride;
    if (i < history)
        next[channel + i - history] = now[channel + chunk + i - history];
}

unsigned blocks_of(int64_t n) {
    return (unsigned)((n + BLOCK - 1) / BLOCK);
}

} // namespace

cudaError_t gck_unpack(gc_pcm format, const void *raw, int64_t raw_frames, gck_planar planar, int64_t frames,
                       cudaStream_t stream) {
    unpack<<<blocks_of(frames), BLOCK, 0, stream>>>(format.container, raw, planar.channels, raw_frames, frames,
                                                    planar.samples, planar.stride);
    return cudaGetLastError();
}

cudaError_t gck_pack(gc_pcm format, gck_planar planar, int64_t frames, void *raw, gck_overs *overs,
                     cudaStream_t stream) {
    float scale = (float)(1u << (format.bits - 1));
    pack<<<blocks_of(frames), BLOCK, 0, stream>>>(pcm_format{format, scale}, planar.samples, planar.stride,
                                                  planar.channels, frames, raw, overs);
    return cudaGetLastError();
}

cudaError_t gck_copy_history(gck_planar now, float *next, int64_t chunk, int64_t history, cudaStream_t stream) {
    if (history == 0)
        return cudaSuccess;
    copy_history<<<dim3(blocks_of(history), now.channels), BLOCK, 0, stream>>>(now.samples, next, now.stride, chunk,
                                                                               history);
    return cudaGetLastError();
}
