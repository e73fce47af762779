/*
 * The kernels of module histogram. A launcher sets the counts to zero before it launches a kernel that adds to them.
 *
 * The private counts of a block are in shared memory, in one or several copies:
 *
 *      for each warp    copy[warp][value]
 *      for each lane    column[value][lane]: bank of a word = lane
 */
#include "course.cuh"

using namespace course;

namespace {

enum { VALUES = 256, BLOCK = 256, WARPS = BLOCK / 32, LANES = 32, LANE_BLOCK = 1024 };

__global__ void __launch_bounds__(BLOCK) count_global(const unsigned char *data, int *counts, int64_t n) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        atomicAdd(&counts[data[i]], 1);
}

__global__ void __launch_bounds__(BLOCK) count_shared(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int own[VALUES];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (int64_t)gridDim.x * BLOCK)
        atomicAdd(&own[data[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

/* Calls add(value) for the bytes of a word, one after the other. */
template <typename Add> __device__ void add_bytes(unsigned word, Add &add) {
#pragma unroll
    for (int shift = 0; shift < 32; shift += 8)
        add(word >> shift & 255);
}

/* Calls add(value) for each byte. A thread loads 16 bytes at a time, and the last n % 16 bytes one by one. */
template <typename Add> __device__ void for_each_byte(const unsigned char *data, int64_t n, Add &add) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x, first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t vectors = n / 16;
    for (int64_t q = first; q < vectors; q += step) {
        const uint4 v = __ldcs((const uint4 *)data + q);
        add_bytes(v.x, add);
        add_bytes(v.y, add);
        add_bytes(v.z, add);
        add_bytes(v.w, add);
    }
    if (first < n - 16 * vectors)
        add(data[16 * vectors + first]);
}

/* Adds the copies of the warps to the global counts. */
__device__ void add_copies(const int (&copy)[WARPS][VALUES], int *counts) {
    int sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        sum += copy[w][threadIdx.x];
    atomicAdd(&counts[threadIdx.x], sum);
}

__device__ void clear_copies(int (&copy)[WARPS][VALUES]) {
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        copy[w][threadIdx.x] = 0;
}

__global__ void __launch_bounds__(BLOCK) count_warps(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int copy[WARPS][VALUES];
    clear_copies(copy);
    __syncthreads();
    int *own = copy[threadIdx.x / 32];
    auto add = [own](unsigned value) { atomicAdd(&own[value], 1); };
    for_each_byte(data, n, add);
    __syncthreads();
    add_copies(copy, counts);
}

__global__ void __launch_bounds__(BLOCK) count_runs(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int copy[WARPS][VALUES];
    clear_copies(copy);
    __syncthreads();
    int *own = copy[threadIdx.x / 32];
    unsigned present = 0;
    int length = 0;
    auto add = [&](unsigned value) {
        if (value != present) {
            atomicAdd(&own[present], length);
            present = value;
            length = 0;
        }
        length++;
    };
    for_each_byte(data, n, add);
    atomicAdd(&own[present], length);
    __syncthreads();
    add_copies(copy, counts);
}

__global__ void __launch_bounds__(LANE_BLOCK) count_lanes(const unsigned char *data, int *counts, int64_t n) {
    __shared__ int column[VALUES][LANES];
    for (int i = threadIdx.x; i < VALUES * LANES; i += LANE_BLOCK)
        column[i / LANES][i % LANES] = 0;
    __syncthreads();
    int *own = &column[0][threadIdx.x % LANES];
    auto add = [own](unsigned value) { atomicAdd(&own[value * LANES], 1); };
    for_each_byte(data, n, add);
    __syncthreads();
    if (threadIdx.x >= VALUES)
        return;
    int sum = 0;
    for (int k = 0; k < LANES; k++) /* each lane begins in another bank */
        sum += column[threadIdx.x][(threadIdx.x + k) % LANES];
    atomicAdd(&counts[threadIdx.x], sum);
}

cudaError_t clear_counts(const gc_lab_run *run) {
    return cudaMemsetAsync(run->buffer[1], 0, VALUES * sizeof(int), stream(run));
}

} // namespace

LAB_LAUNCHER(gck_histogram_global) {
    cudaError_t err = clear_counts(run);
    count_global<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const unsigned char>(run, 0),
                                                                           buffer<int>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_histogram_shared) {
    cudaError_t err = clear_counts(run);
    count_shared<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const unsigned char>(run, 0),
                                                                      buffer<int>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_histogram_warps) {
    cudaError_t err = clear_counts(run);
    count_warps<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const unsigned char>(run, 0),
                                                                     buffer<int>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_histogram_runs) {
    cudaError_t err = clear_counts(run);
    count_runs<<<8 * run->multiprocessors, BLOCK, 0, stream(run)>>>(buffer<const unsigned char>(run, 0),
                                                                    buffer<int>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}

LAB_LAUNCHER(gck_histogram_lanes) {
    cudaError_t err = clear_counts(run);
    count_lanes<<<2 * run->multiprocessors, LANE_BLOCK, 0, stream(run)>>>(buffer<const unsigned char>(run, 0),
                                                                          buffer<int>(run, 1), run->size[0]);
    return err ? err : cudaGetLastError();
}
