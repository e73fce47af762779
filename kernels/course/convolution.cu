/*
 * Direct convolution on the GPU: out[i] = sum over k of taps[k] in[i - k], one output a thread, and at the end X
 * consecutive outputs a thread with the sliding window of the input in registers.
 *
 * The window holds in[i - k] ... in[i - k + X - 1]. From one tap to the next it moves down by one input: one register
 * takes the new value, all others stay, and their roles rotate. Unrolled X times, every role is a compile-time
 * constant.
 */
#include "convolution.h"

#include "course.cuh"

using namespace course;

namespace {

__constant__ float taps[COURSE_TAPS_MOST];

enum { BLOCK = 256, SPREAD = 512 };

struct study {
    const float *in, *h;
    int64_t frames;
    int count;
};

/* Threads stride over the outputs, however few they are. */
__global__ void strided_global(study s, float *out) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.frames;
         i += (int64_t)gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (int k = 0; k < s.count; k++)
            sum = fmaf(s.h[k], s.in[i - k], sum);
        out[i] = sum;
    }
}

template <typename T> __global__ void strided_constant(study s, T *out) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.frames;
         i += (int64_t)gridDim.x * blockDim.x) {
        T sum = 0;
        for (int k = 0; k < s.count; k++)
            sum = fma((T)taps[k], (T)s.in[i - k], sum);
        out[i] = sum;
    }
}

/* The block's inputs, BLOCK + count of them, and the taps in shared memory. The taps are read four at a time: one read
 * for the whole warp, where an indexed read of the constant cache for every two would take many times as long. */
__global__ void __launch_bounds__(BLOCK) tile(study s, float *out) {
    __shared__ float window[COURSE_TAPS_MOST + BLOCK];
    __shared__ __align__(16) float h[COURSE_TAPS_MOST];
    int64_t first = (int64_t)blockIdx.x * BLOCK - s.count, i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    for (int w = threadIdx.x; w < BLOCK + s.count; w += BLOCK)
        if (first + w < s.frames)
            window[w] = s.in[first + w];
    for (int k = threadIdx.x; k < s.count; k += BLOCK)
        h[k] = s.h[k];
    __syncthreads();
    if (i >= s.frames)
        return;
    const float *x = window + s.count + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < s.count; k += 4) {
        float4 four = *(const float4 *)(h + k);
        sum = fmaf(four.x, x[-k], sum);
        sum = fmaf(four.y, x[-k - 1], sum);
        sum = fmaf(four.z, x[-k - 2], sum);
        sum = fmaf(four.w, x[-k - 3], sum);
    }
    out[i] = sum;
}

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
        if (i + r < frames)
            out[i + r] = acc[r];
}

template <int X> cudaError_t launch(const float *in, float *out, int64_t frames, int count, cudaStream_t stream) {
    int64_t threads = (frames + X - 1) / X;
    unrolled<X><<<(unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(in, out, frames, count);
    return cudaGetLastError();
}

study study_of(const gc_lab_run *run) {
    int64_t history = (run->size[1] + 31) / 32 * 32;
    return {buffer<const float>(run, 0) + history, buffer<const float>(run, 1), run->size[0], (int)run->size[1]};
}

/* The parameter is blocks x 2048 + threads; 0 is a thread an output. */
dim3 grid_of(const gc_lab_run *run) {
    return run->parameter ? run->parameter / 2048 : ceil_div(run->size[0], SPREAD);
}

dim3 block_of(const gc_lab_run *run) {
    return run->parameter ? run->parameter % 2048 : SPREAD;
}

} // namespace

LAB_LAUNCHER(gck_convolution_prepare) {
    return course_convolution_taps(buffer<const float>(run, 1), (int)run->count[1], stream(run));
}

LAB_LAUNCHER(gck_convolution_global) {
    strided_global<<<grid_of(run), block_of(run), 0, stream(run)>>>(study_of(run), buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_constant) {
    strided_constant<<<grid_of(run), block_of(run), 0, stream(run)>>>(study_of(run), buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_double) {
    strided_constant<<<grid_of(run), block_of(run), 0, stream(run)>>>(study_of(run), buffer<double>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_tile) {
    study s = study_of(run);
    s.count = (int)run->count[1]; /* with the zeros up to a multiple of 32 */
    tile<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(s, buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_unrolled) {
    return course_convolution_unrolled(study_of(run).in, buffer<float>(run, 2), run->size[0], (int)run->count[1],
                                       run->parameter, stream(run));
}

LAB_FACTS(gck_convolution_unrolled_facts) {
    switch (run->parameter) {
    case 4:
        return kernel_facts(unrolled<4>, BLOCK, 0, facts);
    case 8:
        return kernel_facts(unrolled<8>, BLOCK, 0, facts);
    case 16:
        return kernel_facts(unrolled<16>, BLOCK, 0, facts);
    default:
        return kernel_facts(unrolled<32>, BLOCK, 0, facts);
    }
}

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
