/*
 * Sums over the partitions of responses, for each output o, transform s and bin:
 *
 *      Y(o, s) = sum over the routes of o and the partitions p of  H(p) X(s - p)
 *
 * The kernel is a direct convolution along s: a thread keeps STEP sums and a sliding window of STEP spectra in
 * registers, so that each value loaded is used in STEP products. V: float2, one bin, or float4, two adjacent bins.
 *
 *      delay    | -(partitions - 1) ... -1 | 0 ... transforms - 1 |    spectra of an input
 *
 * Memory: adjacent threads read adjacent bins. The groups of STEP transforms follow each other in the grid, so that the
 * spectra of the response are in the second-level cache from the second group on. The kernel is launched early
 * (launch.cuh): the delay line is read by plain loads.
 */
#ifndef GC_KERNELS_PARTITION_SUMS_CUH
#define GC_KERNELS_PARTITION_SUMS_CUH

#include "kernels/device/complex.cuh"
#include "launch.cuh"

/* Returns a b + c for two complex numbers each. */
__device__ __forceinline__ float4 mul_add(float4 a, float4 b, float4 c) {
    const float2 x = mul_add(make_float2(a.x, a.y), make_float2(b.x, b.y), make_float2(c.x, c.y));
    const float2 y = mul_add(make_float2(a.z, a.w), make_float2(b.z, b.w), make_float2(c.z, c.w));
    return make_float4(x.x, x.y, y.x, y.y);
}

/* Returns, in the threads of group 0, the sum over all groups of `lanes` threads of a block. Every thread of the block
 * calls it with its group and its lane. shared: one element for each thread. */
__device__ __forceinline__ float4 add_groups(float4 sum, float4 *shared, int lanes, int groups, int group, int lane) {
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (group > 0)
        return sum;
    for (int g = 1; g < groups; g++) {
        const float4 v = shared[g * lanes + lane];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    return sum;
}

namespace {

enum { SUMS_BLOCK = 128 };

/* Adds the products of `count` partitions, STEP unless Partial. With one bin for each thread the loads of a partial
 * group are in flight together, without a branch, because there latency counts; with two, arithmetic counts. */
template <int STEP, bool Partial, typename V>
__device__ __forceinline__ void add_partitions(V *acc, V *w, const V *h, const V *x, int64_t pitch, int count) {
    const bool TOGETHER = sizeof(V) == sizeof(float2);
#pragma unroll
    for (int q = 0; q < STEP; q++) {
        const bool valid = !Partial || q < count;
        if (!TOGETHER && !valid)
            return;
        w[(STEP - q) % STEP] = valid ? x[-q * pitch] : V();
        const V f = valid ? __ldg(h + q * pitch) : V();
#pragma unroll
        for (int r = 0; r < STEP; r++)
            acc[r] = mul_add(w[(r - q + STEP) % STEP], f, acc[r]);
    }
}

/* One V of a spectrum of `pitch` per thread; block.x: STEP transforms, then bins; block.y: output. Spectrum s - p is in
 * register (s - p) mod STEP of the window, a compile-time constant because p is unrolled by STEP. */
template <typename V, int STEP>
__global__ void __launch_bounds__(SUMS_BLOCK, 4)
    sum_partitions(gck_routes a, int64_t pitch, int transforms, int partitions, const V *__restrict__ spectra,
                   const V *delay, V *sums) {
    const int groups = (transforms + STEP - 1) / STEP, s0 = blockIdx.x % groups * STEP;
    const int64_t bin = (int64_t)(blockIdx.x / groups) * SUMS_BLOCK + threadIdx.x;
    V acc[STEP], w[STEP];
    pdl_trigger();
    pdl_wait();
#pragma unroll
    for (int r = 0; r < STEP; r++)
        acc[r] = V();
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        const gck_route route = a.route[e];
        const V *h = spectra + (int64_t)route.plane * partitions * pitch + bin;
        const V *x = delay + ((int64_t)route.input * (partitions - 1 + transforms) + partitions - 1 + s0) * pitch + bin;
#pragma unroll
        for (int r = 1; r < STEP; r++)
            w[r] = s0 + r < transforms ? x[r * pitch] : V();
#pragma unroll 1
        for (int p = 0; p < partitions; p += STEP) {
            if (p + STEP <= partitions)
                add_partitions<STEP, false>(acc, w, h + p * pitch, x - p * pitch, pitch, STEP);
            else
                add_partitions<STEP, true>(acc, w, h + p * pitch, x - p * pitch, pitch, partitions - p);
        }
    }
    V *y = sums + ((int64_t)blockIdx.y * transforms + s0) * pitch + bin;
#pragma unroll
    for (int r = 0; r < STEP; r++)
        if (s0 + r < transforms)
            y[r * pitch] = acc[r];
}

/* Queues the sums of a chunk, whose spectra have `spectrum` complex numbers. */
template <typename V, int STEP>
cudaError_t launch_sums(const gck_routes &routes, const gck_partitioning &p, int64_t spectrum, cudaStream_t stream) {
    const int64_t pitch = spectrum * (int64_t)sizeof(float2) / (int64_t)sizeof(V);
    const int64_t blocks = (p.transforms + STEP - 1) / STEP * (pitch / SUMS_BLOCK);
    return launch_dependent(sum_partitions<V, STEP>, dim3((unsigned)blocks, (unsigned)routes.outputs), SUMS_BLOCK, 0,
                            stream, routes, pitch, p.transforms, p.partitions, (const V *)p.spectra, (const V *)p.delay,
                            (V *)p.sums);
}

} // namespace

#endif
