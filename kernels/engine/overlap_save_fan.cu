/*
 * Overlap-save where many outputs have the same input, such as one signal and a response for each of hundreds of
 * directions: a block of the input is transformed once and stays in registers; for each output it is multiplied,
 * transformed back and stored.
 *
 * A warp has one block of the signal. The warps of a multiprocessor go through the same outputs at about the same time,
 * so that most of them read a spectrum from the first-level cache. A barrier that kept them together cost more than it
 * saved (2.0 ms instead of 1.8 for 512 outputs of a minute).
 */
#include "overlap_save.cuh"
#include "twiddles.h"

namespace {

typedef fft_fma<5, 5, true> f;

/* Warps of a block of threads, resident blocks, and outputs of a block: measured on an H200. */
enum { WARPS = 4, RESIDENT = 3, OUTPUTS = 48 };

__global__ void __launch_bounds__(32 * WARPS, RESIDENT)
    fan_out(const __grid_constant__ gck_matrix a, int hop, int64_t blocks, const float2 *__restrict__ twiddles,
            const float2 *__restrict__ spectra) {
    extern __shared__ __align__(16) float2 shared[];
    const int t = threadIdx.x % 32, warp = threadIdx.x / 32, overlap = 2 * f::N - hop;
    const int64_t block = (int64_t)blockIdx.x * WARPS + warp;
    const int end = min((int)blockIdx.y * OUTPUTS + OUTPUTS, a.outputs);
    float2 *own = shared + warp * f::shared, x[f::P], v[f::P];
    pdl_trigger();
    pdl_wait();
    if (block >= blocks)
        return;
    const int64_t first = block * hop - overlap;
    int input = -1;
#pragma unroll 1
    for (int output = blockIdx.y * OUTPUTS; output < end; output++) {
        const gck_route route = a.route[output];
        if (route.input != input) {
            input = route.input;
            load_fresh_right_angle<f::P, f::T>(x, a.in + input * a.in_stride + first, t);
            __syncwarp();
            f::forward(x, own, t, twiddles);
        }
        const float2 *h = spectra + (int64_t)route.plane * f::N + 2 * t;
#pragma unroll
        for (int j = 0; j < f::P; j += 2) {
            const float4 w = __ldg((const float4 *)(h + j * f::T));
            v[j] = mul(x[j], make_float2(w.x, w.y));
            v[j + 1] = mul(x[j + 1], make_float2(w.z, w.w));
        }
        __syncwarp();
        f::inverse(v, own, t, twiddles + f::forward_twiddles);
        untwist<f::P>(v, twiddles[f::forward_twiddles + f::inverse_twiddles + t]);
        store_right_angle<f::P, f::T>(v, a.out + output * a.out_stride + first, overlap, t);
    }
}

} // namespace

bool gck_overlap_save_fans(const gck_matrix *matrix) {
    int inputs = 1;
    for (int o = 1; matrix->single && o < matrix->outputs; o++)
        inputs += matrix->host_route[o].input != matrix->host_route[o - 1].input;
    return matrix->single && matrix->outputs >= 8 * inputs;
}

cudaError_t gck_overlap_save_fan(const gck_matrix *matrix, int64_t hop, int64_t blocks,
                                 const gck_overlap_save_memory &memory, cudaStream_t stream) {
    const int bytes = WARPS * f::shared * (int)sizeof(float2);
    const dim3 grid((unsigned)((blocks + WARPS - 1) / WARPS), (matrix->outputs + OUTPUTS - 1) / OUTPUTS);
    return launch_dependent(fan_out, grid, 32 * WARPS, bytes, stream, *matrix, (int)hop, blocks, memory.twiddles,
                            memory.spectra);
}
