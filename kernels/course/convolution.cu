/*
 * The course's case study (Stahl, GPU Programming with CUDA, section 11): direct convolution with X consecutive outputs
 * a thread, the sliding window of the input in registers, the taps in constant memory, the input read from global
 * memory.
 *
 *      out[i + r] = sum over k of taps[k] in[i + r - k]
 *
 * The window holds in[i - k] ... in[i - k + X - 1]. From one tap to the next it moves down by one input: one register
 * takes the new value, all others stay, and their roles rotate. Unrolled X times, every role is a compile-time
 * constant.
 */
#include "convolution.h"

namespace {

__constant__ float taps[COURSE_TAPS_MOST];

enum { BLOCK = 256 };

template <int X>
__global__ void __launch_bounds__(BLOCK) unrolled(const float *in, float *out, int64_t frames, int count) {
    int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * X;
    if (i >= frames)
        return;
    float w[X], acc[X];
#pragma unroll
    for (int r = 0; r < X; r++) {
        acc[r] = 0.0f;
        w[r] = in[i + r];
    }
    for (int k = 0; k < count; k += X) {
        float next[X]; /* in[i - k - X] ... in[i - k - 1], neighbours: four a load */
#pragma unroll
        for (int q = 0; q < X; q += 4) {
            float4 v = *(const float4 *)(in + i - k - X + q);
            next[q] = v.x, next[q + 1] = v.y, next[q + 2] = v.z, next[q + 3] = v.w;
        }
#pragma unroll
        for (int q = 0; q < X; q++) {
            float h = taps[k + q];
#pragma unroll
            for (int r = 0; r < X; r++)
                acc[r] = fmaf(h, w[(r - q + X) % X], acc[r]);
            w[X - 1 - q] = next[X - 1 - q];
        }
    }
#pragma unroll
    for (int r = 0; r < X; r++)
        out[i + r] = acc[r];
}

template <int X> cudaError_t launch(const float *in, float *out, int64_t frames, int count, cudaStream_t stream) {
    int64_t threads = (frames + X - 1) / X;
    unrolled<X><<<(unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(in, out, frames, count);
    return cudaGetLastError();
}

} // namespace

cudaError_t course_convolution_taps(const float *from, int count, cudaStream_t stream) {
    return cudaMemcpyToSymbolAsync(taps, from, (size_t)count * sizeof(float), 0, cudaMemcpyDefault, stream);
}

cudaError_t course_convolution_unrolled(const float *in, float *out, int64_t frames, int count, int outputs,
                                        cudaStream_t stream) {
    switch (outputs) {
    case 4:
        return launch<4>(in, out, frames, count, stream);
    case 8:
        return launch<8>(in, out, frames, count, stream);
    case 16:
        return launch<16>(in, out, frames, count, stream);
    case 32:
        return launch<32>(in, out, frames, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
