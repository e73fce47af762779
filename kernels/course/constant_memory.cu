/* A table read through global, constant, read-only and shared memory. */
#include "course.cuh"

using namespace course;

namespace {

enum { TABLE = 1024, READS = 256, BLOCK = 256 };

__constant__ float constants[TABLE];

__device__ __forceinline__ unsigned first_of(int64_t i, bool divergent) {
    return (unsigned)(divergent ? 37 * i : 7 * (i / 32)) % TABLE;
}

template <typename Read> __device__ __forceinline__ void sum_up(float *out, int64_t n, bool divergent, Read read) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    unsigned at = first_of(i, divergent);
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < READS; k++, at = (at + 13) % TABLE)
        sum += read(at);
    out[i] = sum;
}

/* volatile: as often as written, and not through the read-only path */
__global__ void from_global(const volatile float *table, float *out, int64_t n, bool divergent) {
    sum_up(out, n, divergent, [=](unsigned at) { return table[at]; });
}

__global__ void from_constant(float *out, int64_t n, bool divergent) {
    sum_up(out, n, divergent, [](unsigned at) { return constants[at]; });
}

__global__ void from_read_only(const float *table, float *out, int64_t n, bool divergent) {
    sum_up(out, n, divergent, [=](unsigned at) { return __ldg(table + at); });
}

__global__ void from_shared(const float *table, float *out, int64_t n, bool divergent) {
    __shared__ float copy[TABLE];
    for (int k = threadIdx.x; k < TABLE; k += BLOCK)
        copy[k] = table[k];
    __syncthreads();
    sum_up(out, n, divergent, [&](unsigned at) { return copy[at]; });
}

} // namespace

LAB_LAUNCHER(gck_table_prepare) {
    return cudaMemcpyToSymbolAsync(constants, run->buffer[0], sizeof constants, 0, cudaMemcpyDeviceToDevice,
                                   stream(run));
}

LAB_LAUNCHER(gck_table_global) {
    from_global<<<pieces(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_constant) {
    from_constant<<<pieces(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<float>(run, 1), run->size[0],
                                                                          run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_read_only) {
    from_read_only<<<pieces(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_table_shared) {
    from_shared<<<pieces(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->parameter != 0);
    return cudaGetLastError();
}
