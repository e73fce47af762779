/* The kernels of module reduction. A launcher sets the sum to zero before it launches a kernel that adds to it. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, FLOAT4_BLOCK = 512, LOADS_IN_FLIGHT = 8 };

/* The sum is volatile so that each thread really reads and writes it; otherwise the compiler could hide the race. */
__global__ void sum_race(const float *a, volatile float *sum, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        *sum = *sum + a[i];
}

/* Inline assembly, because for a plain atomicAdd the compiler first adds the elements of a warp. */
__global__ void sum_atomic(const float *a, float *sum, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(sum), "f"(a[i]) : "memory");
}

__global__ void sum_shared(const float *a, float *sum, int64_t n) {
    __shared__ float block_sum;
    if (threadIdx.x == 0)
        block_sum = 0.0f;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        atomicAdd(&block_sum, a[i]);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(sum, block_sum);
}

/* Returns the sum of the values of a warp, in lane 0. */
__device__ float warp_sum(float v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}

/* Adds the values of all threads of the block, and the result once to the global sum. */
__device__ void add_block_sum(float v, float *sum) {
    __shared__ float warp_sums[32];
    int lane = threadIdx.x % 32, warp_index = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0)
        warp_sums[warp_index] = v;
    __syncthreads();
    if (warp_index == 0) {
        v = warp_sum(lane < (int)blockDim.x / 32 ? warp_sums[lane] : 0.0f);
        if (lane == 0)
            atomicAdd(sum, v);
    }
}

__global__ void sum_shuffle(const float *a, float *sum, int64_t n) {
    float v = 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        v += a[i];
    add_block_sum(v, sum);
}

__global__ void __launch_bounds__(FLOAT4_BLOCK) sum_float4(const float *a, float *sum, int64_t n) {
    const float4 *in = (const float4 *)a;
    int64_t vectors = n / 4, step = (int64_t)gridDim.x * FLOAT4_BLOCK;
    int64_t q = (int64_t)blockIdx.x * FLOAT4_BLOCK + threadIdx.x;
    float v = 0.0f;
    for (; q < vectors; q += LOADS_IN_FLIGHT * step) {
        float4 x[LOADS_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; k++)
            x[k] = q + k * step < vectors ? __ldcs(in + q + k * step) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; k++)
            v += (x[k].x + x[k].y) + (x[k].z + x[k].w);
    }
    if (blockIdx.x == 0 && threadIdx.x < n - 4 * vectors)
        v += a[4 * vectors + threadIdx.x];
    add_block_sum(v, sum);
}

/* Reads all elements, for the peak rate of reading: every thread has eight vectors in flight and no loop. It writes
 * only if the sum is a number that no input has, which the compiler cannot know. */
__global__ void __launch_bounds__(BLOCK) read_all(const float4 *a, float *out, int64_t vectors) {
    const int64_t q = (int64_t)blockIdx.x * BLOCK * LOADS_IN_FLIGHT + threadIdx.x;
    float4 x[LOADS_IN_FLIGHT];
    float v = 0.0f;
#pragma unroll
    for (int k = 0; k < LOADS_IN_FLIGHT; k++)
        x[k] = q + k * BLOCK < vectors ? __ldcs(a + q + k * BLOCK) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int k = 0; k < LOADS_IN_FLIGHT; k++)
        v += (x[k].x + x[k].y) + (x[k].z + x[k].w);
    if (v == 1e30f)
        *out = v;
}

cudaError_t clear_sum(const gc_lab_run *run) {
    return cudaMemsetAsync(run->buffer[1], 0, sizeof(float), stream(run));
}

} // namespace

LAB_LAUNCHER(gck_reduction_race) {
    cudaError_t err = clear_sum(run);
    sum_race<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                       buffer<float>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_atomic) {
    cudaError_t err = clear_sum(run);
    sum_atomic<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                         buffer<float>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_shared) {
    cudaError_t err = clear_sum(run);
    sum_shared<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                    run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_shuffle) {
    cudaError_t err = clear_sum(run);
    sum_shuffle<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                     run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_float4) {
    cudaError_t err = clear_sum(run);
    sum_float4<<<2 * run->multiprocessors, FLOAT4_BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                           buffer<float>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_reduction_read) {
    const int64_t vectors = run->count[0] / 4;
    read_all<<<ceil_div(vectors, BLOCK * LOADS_IN_FLIGHT), BLOCK, 0, stream(run)>>>(buffer<const float4>(run, 0),
                                                                                    buffer<float>(run, 1), vectors);
    return cudaGetLastError();
}
