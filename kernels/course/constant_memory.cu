/* The kernels of module constant-memory: a table read from global, constant, read-only and shared memory. */
#include "course.cuh"

using namespace course;

namespace {

enum { TABLE = 1024, READS = 256, BLOCK = 256 };

__constant__ float constant_table[TABLE];

__device__ __forceinline__ unsigned first_index(int64_t i, bool divergent) {
    return (unsigned)(divergent ? 37 * i : 7 * (i / 32)) % TABLE;
}

template <typename Read> __device__ __forceinline__ void sum_reads(float *out, int64_t n, bool divergent, Read read) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    unsigned index = first_index(i, divergent);
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < READS; k++, index = (index + 13) % TABLE)
        sum += read(index);
    out[i] = sum;
}

/* The table is volatile so that every load is executed, and not through the read-only path. */
__global__ void read_global(const volatile float *table, float *out, int64_t n, bool divergent) {
    sum_reads(out, n, divergent, [=](unsigned index) { return table[index]; });
}

__global__ void read_constant(float *out, int64_t n, bool divergent) {
    sum_reads(out, n, divergent, [](unsigned index) { return constant_table[index]; });
}

__global__ void read_through_ldg(const float *table, float *out, int64_t n, bool divergent) {
    sum_reads(out, n, divergent, [=](unsigned index) { return __ldg(table + index); });
}

__global__ void read_shared(const float *table, float *out, int64_t n, bool divergent) {
    __shared__ float shared_table[TABLE];
    for (int k = threadIdx.x; k < TABLE; k += BLOCK)
        shared_table[k] = table[k];
    __syncthreads();
    sum_reads(out, n, divergent, [&](unsigned index) { return shared_table[index]; });
}

} // namespace

LAB_LAUNCHER(gck_table_prepare) {
    return cudaMemcpyToSymbolAsync(constant_table, run->buffer[0], sizeof constant_table, 0, cudaMemcpyDeviceToDevice,
                                   stream(run));
}

LAB_LAUNCHER(gck_table_global) {
    read_global<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_constant) {
    read_constant<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<float>(run, 1), run->size[0],
                                                                            run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_read_only) {
    read_through_ldg<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_shared) {
    read_shared<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}
