/*
 * Overlap-save where many outputs have the same input, such as one signal and a response for each of hundreds of
 * directions: a block of the input is transformed once and stays in registers; for each output it is multiplied,
 * transformed back and stored.
 *
 * Outputs of different inputs are launches of their own: with a transform of an input in the loop over the outputs, the
 * compiler loads the last quarter of a spectrum after the products of the first. 512 outputs of a minute took 2.12 ms
 * with that loop, 1.95 without, 1.91 with the next spectrum prefetched.
 *
 * A warp has one block of the signal. The warps of a multiprocessor go through the same outputs at about the same time,
 * so that most of them read a spectrum from the first-level cache. A barrier that kept them together cost more than it
 * saved (2.0 instead of 1.8 ms).
 *
 * What it buys: 1.56 times the speed of a transform of the input for each output (512 outputs of a minute: 1.90
 * instead of 2.97 ms, H200; docs/experiments/dense.md).
 */
#include "kernels/engine/overlap_save.cuh"

namespace {

typedef full_fft<5, 5> f;

/* Warps of a block of threads, resident blocks, and outputs of a block: measured on an H200. */
enum { WARPS = 4, RESIDENT = 3, OUTPUTS = 48 };

/* Prefetches a spectrum into the first-level cache, with all threads of a warp. */
__device__ __forceinline__ void prefetch_l1(const float2 *spectrum, int t) {
    const int line = 128;
    for (int at = t * line; at < f::N * (int)sizeof(float2); at += 32 * line)
        asm volatile("prefetch.global.L1 [%0];" ::"l"((const char *)spectrum + at));
}

/* Outputs from .. to - 1, which have the same input. */
__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    fan_out(const __grid_constant__ gck_routes a, int from, int to, int hop, int64_t blocks,
            const float2 *__restrict__ twiddles, const float2 *__restrict__ spectra) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32, warp = threadIdx.x / 32, overlap = 2 * f::N - hop;
    const int64_t block = (int64_t)blockIdx.x * WARPS + warp, first = block * hop - overlap;
    int output = from + blockIdx.y * OUTPUTS;
    const int last = min(output + OUTPUTS, to) - 1;
    float2 *own = shared + warp * f::shared, x[f::P], v[f::P];
    pdl_trigger();
    pdl_wait();
    if (block >= blocks)
        return;
    gck_route route = a.route[output];
    load_fresh_right_angle<f::P, f::T>(x, a.in + route.input * a.in_stride + first, t);
    __syncwarp();
    f::forward(x, own, t, twiddles);
    float *y = a.out + output * a.out_stride + first;
#pragma unroll 1
    for (; output <= last; output++, y += a.out_stride) {
        const float2 *h = spectra + (int64_t)route.plane * f::N + 2 * t;
        route.plane = a.route[min(output + 1, last)].plane; /* ahead of the loads that depend on it */
        multiply_spectrum<f::P, f::T>(v, x, h);
        prefetch_l1(spectra + (int64_t)route.plane * f::N, t);
        __syncwarp();
        f::inverse(v, own, t, twiddles);
        untwist<f::P>(v, opaque_pointer(twiddles)[f::twiddles - f::T + t]);
        store_right_angle<f::P, f::T>(v, y, overlap, t);
    }
}

} // namespace

bool gck_overlap_save_fans(const gck_routes *routes) {
    int inputs = 1;
    for (int o = 1; routes->single && o < routes->outputs; o++)
        inputs += routes->host_route[o].input != routes->host_route[o - 1].input;
    return routes->single && routes->outputs >= 8 * inputs;
}

/* Returns the output behind those from `output` on that have its input. */
static int end_of_input(const gck_routes *routes, int output) {
    const int input = routes->host_route[output].input;
    while (output < routes->outputs && routes->host_route[output].input == input)
        output++;
    return output;
}

cudaError_t gck_overlap_save_fan(const gck_routes *routes, int64_t hop, int64_t blocks,
                                 const gck_overlap_save_memory &memory, cudaStream_t stream) {
    const int bytes = WARPS * f::shared * (int)sizeof(float2);
    cudaError_t err = cudaSuccess;
    for (int from = 0, to; from < routes->outputs && !err; from = to) {
        to = end_of_input(routes, from);
        const dim3 grid((unsigned)((blocks + WARPS - 1) / WARPS), (to - from + OUTPUTS - 1) / OUTPUTS);
        err = launch_dependent(fan_out, grid, 32 * WARPS, bytes, stream, *routes, from, to, (int)hop, blocks,
                               memory.twiddles, memory.spectra);
    }
    return err;
}
