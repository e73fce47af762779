/* Sums on the GPU. The sum is set to zero before each launch that adds to it. */
#include "course.cuh"

#include <cub/device/device_reduce.cuh>

using namespace course;

namespace {

enum { BLOCK = 256, FAST_BLOCK = 512, UNDER_WAY = 8 };

/* volatile: the read and the write must happen, or the compiler would sum in a register and hide the race. */
__global__ void race(const float *a, volatile float *sum, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        *sum = *sum + a[i];
}

/* The assembly keeps the compiler from adding up a warp's elements first, which it does for a plain atomicAdd. */
__global__ void atomic(const float *a, float *sum, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(sum), "f"(a[i]) : "memory");
}

__global__ void shared(const float *a, float *sum, int64_t n) {
    __shared__ float mine;
    if (threadIdx.x == 0)
        mine = 0.0f;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        atomicAdd(&mine, a[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(sum, mine);
}

__device__ float of_warp(float v) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        v += __shfl_down_sync(0xffffffffu, v, apart);
    return v;
}

/* The block's sum, added once to the global one. */
__device__ void of_block(float v, float *sum) {
    __shared__ float warp[32];
    int lane = threadIdx.x % 32, which = threadIdx.x / 32;
    v = of_warp(v);
    if (lane == 0)
        warp[which] = v;
    __syncthreads();
    if (which == 0) {
        v = of_warp(lane < (int)blockDim.x / 32 ? warp[lane] : 0.0f);
        if (lane == 0)
            atomicAdd(sum, v);
    }
}

__global__ void shuffle(const float *a, float *sum, int64_t n) {
    float v = 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        v += a[i];
    of_block(v, sum);
}

__global__ void __launch_bounds__(FAST_BLOCK) vector(const float *a, float *sum, int64_t n) {
    const float4 *from = (const float4 *)a;
    int64_t quads = n / 4, step = (int64_t)gridDim.x * FAST_BLOCK;
    int64_t q = (int64_t)blockIdx.x * FAST_BLOCK + threadIdx.x;
    float v = 0.0f;
    for (; q < quads; q += UNDER_WAY * step) {
        float4 x[UNDER_WAY];
#pragma unroll
        for (int k = 0; k < UNDER_WAY; k++)
            x[k] = q + k * step < quads ? __ldcs(from + q + k * step) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < UNDER_WAY; k++)
            v += (x[k].x + x[k].y) + (x[k].z + x[k].w);
    }
    if (blockIdx.x == 0 && threadIdx.x < n - 4 * quads)
        v += a[4 * quads + threadIdx.x];
    of_block(v, sum);
}

cudaError_t zero(const gc_lab_run *run) {
    return cudaMemsetAsync(run->buffer[1], 0, sizeof(float), stream(run));
}

} // namespace

LAB_LAUNCHER(gck_reduction_race) {
    cudaError_t err = zero(run);
    race<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                   run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_atomic) {
    cudaError_t err = zero(run);
    atomic<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                     run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_shared) {
    cudaError_t err = zero(run);
    shared<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_shuffle) {
    cudaError_t err = zero(run);
    shuffle<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                 run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_vector) {
    cudaError_t err = zero(run);
    vector<<<2 * run->multiprocessors, FAST_BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                     run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_cub) {
    size_t bytes = (size_t)run->scratch_bytes;
    return cub::DeviceReduce::Sum(run->scratch, bytes, buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0],
                                  stream(run));
}
