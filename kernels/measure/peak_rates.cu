/*
 * Peak rates of a device, to compare the figures of other kernels with:
 *
 *      fma_loop   x = x a + b in registers      arithmetic: 2 x 64 operations per thread and round
 *      copy       to[i] = from[i]               memory: 16 bytes read and written per thread
 *      copy_early the same, launched early (launch.cuh): the lower bound of a convolution that is launched early
 *      empty                                    time of a launch
 */
#include "kernels/engine/launch.cuh"
#include "measure.h"

namespace {

enum { BLOCK = 256, CHAINS = 16 };

/* Sixteen independent chains per thread hide the latency of the multiply-add. The factors keep the values finite. */
__global__ void __launch_bounds__(BLOCK) fma_loop(float *out, int rounds) {
    float x[CHAINS];
    float a = 1.0f - 1e-6f * (float)threadIdx.x, b = 1e-7f * (float)blockIdx.x;
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        x[i] = (float)i;
#pragma unroll 1
    for (int k = 0; k < rounds; k++)
#pragma unroll
        for (int u = 0; u < 64 / CHAINS; u++)
#pragma unroll
            for (int i = 0; i < CHAINS; i++)
                x[i] = fmaf(x[i], a, b);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    out[(int64_t)blockIdx.x * BLOCK + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(BLOCK) copy(const float4 *from, float4 *to, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

__global__ void __launch_bounds__(BLOCK) copy_early(const float4 *from, float4 *to, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    pdl_trigger();
    pdl_wait();
    if (i < n)
        to[i] = from[i];
}

__global__ void empty() {}

} // namespace

cudaError_t gck_peak_fma(float *out, int blocks, int rounds, cudaStream_t stream) {
    fma_loop<<<blocks, BLOCK, 0, stream>>>(out, rounds);
    return cudaGetLastError();
}

cudaError_t gck_peak_copy(const float *from, float *to, int64_t n, cudaStream_t stream) {
    int64_t quads = n / 4;
    copy<<<(unsigned)((quads + BLOCK - 1) / BLOCK), BLOCK, 0, stream>>>((const float4 *)from, (float4 *)to, quads);
    return cudaGetLastError();
}

cudaError_t gck_peak_copy_early(const float *from, float *to, int64_t n, cudaStream_t stream) {
    const int64_t quads = n / 4;
    return launch_dependent(copy_early, dim3((unsigned)((quads + BLOCK - 1) / BLOCK)), BLOCK, 0, stream,
                            (const float4 *)from, (float4 *)to, quads);
}

cudaError_t gck_peak_empty(cudaStream_t stream) {
    empty<<<1, 1, 0, stream>>>();
    return cudaGetLastError();
}
