/*
 * The kernels of module convolution: out[i] = sum over k of taps[k] in[i - k], with one output per thread, and with X
 * consecutive outputs per thread whose window of inputs stays in registers.
 *
 * The window holds in[i - k] ... in[i - k + X - 1]. From one tap to the next it moves down by one input: one register
 * takes the new input, the others keep theirs, and the roles of the registers rotate. When the loop is unrolled X
 * times, every role is a compile-time constant.
 */
#include "convolution.h"

#include "course.cuh"

using namespace course;

namespace {

__constant__ float constant_taps[COURSE_MAX_TAPS];

enum { BLOCK = 256, STRIDED_BLOCK = 512 };

struct filter_input {
    const float *in, *h;
    int64_t frames;
    int count;
};

/* Grid-stride loops over the outputs, for any number of threads. */
__global__ void convolve_global(filter_input s, float *out) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.frames;
         i += (int64_t)gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (int k = 0; k < s.count; k++)
            sum = fmaf(s.h[k], s.in[i - k], sum);
        out[i] = sum;
    }
}

template <typename T> __global__ void convolve_constant(filter_input s, T *out) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.frames;
         i += (int64_t)gridDim.x * blockDim.x) {
        T sum = 0;
        for (int k = 0; k < s.count; k++)
            sum = fma((T)constant_taps[k], (T)s.in[i - k], sum);
        out[i] = sum;
    }
}

/* Copies the inputs of the block, BLOCK + count of them, and the taps to shared memory. The taps are read four at a
 * time: one broadcast read from shared memory serves the whole warp for four taps. Reading them from constant memory
 * with an index would need a load for every two taps and take many times as long. */
__global__ void __launch_bounds__(BLOCK) convolve_tile(filter_input s, float *out) {
    __shared__ float window[COURSE_MAX_TAPS + BLOCK];
    __shared__ __align__(16) float h[COURSE_MAX_TAPS];
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
        float4 h4 = *(const float4 *)(h + k);
        sum = fmaf(h4.x, x[-k], sum);
        sum = fmaf(h4.y, x[-k - 1], sum);
        sum = fmaf(h4.z, x[-k - 2], sum);
        sum = fmaf(h4.w, x[-k - 3], sum);
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
        float next[X]; /* in[i - k - X] ... in[i - k - 1], four per load */
#pragma unroll
        for (int q = 0; q < X; q += 4) {
            float4 v = *(const float4 *)(in + i - k - X + q);
            next[q] = v.x, next[q + 1] = v.y, next[q + 2] = v.z, next[q + 3] = v.w;
        }
#pragma unroll
        for (int q = 0; q < X; q++) {
            float h = constant_taps[k + q];
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

template <int X>
cudaError_t launch_unrolled(const float *in, float *out, int64_t frames, int count, cudaStream_t stream) {
    int64_t threads = (frames + X - 1) / X;
    unrolled<X><<<(unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>(in, out, frames, count);
    return cudaGetLastError();
}

filter_input filter_input_of(const gc_lab_run *run) {
    int64_t history = (run->size[1] + 31) / 32 * 32;
    return {buffer<const float>(run, 0) + history, buffer<const float>(run, 1), run->size[0], (int)run->size[1]};
}

/* The grid and block of the grid-stride kernels. The parameter is 2048 x blocks + threads per block; 0: one thread per
 * output. */
dim3 strided_grid(const gc_lab_run *run) {
    return run->parameter ? run->parameter / 2048 : ceil_div(run->size[0], STRIDED_BLOCK);
}

dim3 strided_block(const gc_lab_run *run) {
    return run->parameter ? run->parameter % 2048 : STRIDED_BLOCK;
}

} // namespace

LAB_LAUNCHER(gck_convolution_prepare) {
    return course_convolution_set_taps(buffer<const float>(run, 1), (int)run->count[1], stream(run));
}

LAB_LAUNCHER(gck_convolution_global) {
    convolve_global<<<strided_grid(run), strided_block(run), 0, stream(run)>>>(filter_input_of(run),
                                                                               buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_constant) {
    convolve_constant<<<strided_grid(run), strided_block(run), 0, stream(run)>>>(filter_input_of(run),
                                                                                 buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_double) {
    convolve_constant<<<strided_grid(run), strided_block(run), 0, stream(run)>>>(filter_input_of(run),
                                                                                 buffer<double>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_tile) {
    filter_input s = filter_input_of(run);
    s.count = (int)run->count[1]; /* including the zeros up to a multiple of 32 */
    convolve_tile<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(s, buffer<float>(run, 2));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_convolution_unrolled) {
    return course_convolution_unrolled(filter_input_of(run).in, buffer<float>(run, 2), run->size[0], (int)run->count[1],
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

cudaError_t course_convolution_set_taps(const float *from, int count, cudaStream_t stream) {
    return cudaMemcpyToSymbolAsync(constant_taps, from, (size_t)count * sizeof(float), 0, cudaMemcpyDefault, stream);
}

cudaError_t course_convolution_unrolled(const float *in, float *out, int64_t frames, int count, int outputs,
                                        cudaStream_t stream) {
    switch (outputs) {
    case 4:
        return launch_unrolled<4>(in, out, frames, count, stream);
    case 8:
        return launch_unrolled<8>(in, out, frames, count, stream);
    case 16:
        return launch_unrolled<16>(in, out, frames, count, stream);
    case 32:
        return launch_unrolled<32>(in, out, frames, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
