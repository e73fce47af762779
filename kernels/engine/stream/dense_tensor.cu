/*
 * The products of dense matrices on tensor cores (dense.h), with the precision of floats.
 *
 *      a b = (ah + al) (bh + bl),    al bl is left out
 *
 * ah is the half nearest to a, al the half nearest to the rest. A half has 11 bits and a small range: an output's
 * responses, and a column of spectra, are scaled by a power of two to below 2^15, so that a number 96 dB below the
 * largest one still has its 22 bits. Responses are scaled and split at set-up, spectra by the thread that has staged
 * them. A complex product is two real ones over neighbouring numbers along k:
 *
 *      re = (hr, -hi) (xr, xi)       im = (hi, hr) (xr, xi)
 *
 * Tensor cores truncate their sums, which over a long sum would be a bias: only the three products of eight inputs are
 * added there; their sum is scaled back and added in registers, which round to nearest.
 *
 * A warp computes 16 outputs x 8 NT columns of four bins, so that the 32 bytes of a group are written by one thread.
 *
 * What it buys over dense_product.cu: 5 to 56 % (0.56 instead of 0.59 ms, 1.69 instead of 2.57, 0.87 instead of 1.36,
 * H200; docs/experiments/dense.md).
 */
#include "dense.cuh"
#include "kernels/engine/mma.cuh"

namespace {

using namespace dense;

/* Returns (hi, hr) for (hr, -hi). */
[[maybe_unused]] __device__ __forceinline__ unsigned turned(unsigned h) {
    return __byte_perm(h, 0, 0x1032) ^ 0x8000u;
}

/* sum[n][0 .. 3] += the real parts, sum[n][4 .. 7] += the imaginary parts of a response times x[n], times the factor of
 * the column. x[n]: the nearest halves of inputs t and t + 4, then those of the rest. */
template <int NT>
__device__ __forceinline__ void add_product(float (*sum)[8], uint4 nearest, uint4 rest, const uint4 *x,
                                            const float2 *factor) {
    const unsigned high[4] = {nearest.x, nearest.y, nearest.z, nearest.w}, low[4] = {rest.x, rest.y, rest.z, rest.w};
    unsigned high_turned[4], low_turned[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        high_turned[i] = turned(high[i]);
        low_turned[i] = turned(low[i]);
    }
    float re[NT][4] = {}, im[NT][4] = {};
#pragma unroll
    for (int n = 0; n < NT; n++) {
        multiply_add<__half>(re[n], low, x[n].x, x[n].y);
        multiply_add<__half>(im[n], low_turned, x[n].x, x[n].y);
    }
#pragma unroll
    for (int n = 0; n < NT; n++) {
        multiply_add<__half>(re[n], high, x[n].z, x[n].w);
        multiply_add<__half>(im[n], high_turned, x[n].z, x[n].w);
    }
#pragma unroll
    for (int n = 0; n < NT; n++) {
        multiply_add<__half>(re[n], high, x[n].x, x[n].y);
        multiply_add<__half>(im[n], high_turned, x[n].x, x[n].y);
    }
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum[n][i] = fmaf(re[n][i], i % 2 ? factor[n].y : factor[n].x, sum[n][i]);
            sum[n][4 + i] = fmaf(im[n][i], i % 2 ? factor[n].y : factor[n].x, sum[n][4 + i]);
        }
}

/* Stores the sums of a thread, scaled back: outputs `output` and output + 8, blocks `block` and block + 1 of NT tiles.
 */
template <int NT>
__device__ __forceinline__ void store_sums(const operands &a, int64_t group, int output, int block,
                                           const float (*sum)[NT][8]) {
#pragma unroll
    for (int i = 0; i < 4; i++) { /* number i: row 8 (i / 2), column i mod 2 */
        const int o = output + i / 2 * 8;
        const float f = o < a.outputs ? unscale_of(a.response_peaks[o]) : 0.0f;
        float4 *to =
            (float4 *)a.sums + 2 * ((group * a.all_outputs + a.first_output + o) * (int64_t)a.blocks + block + i % 2);
#pragma unroll
        for (int n = 0; n < NT; n++)
            if (o < a.outputs && block + i % 2 + 8 * n < a.blocks) {
                to[16 * n] =
                    make_float4(f * sum[0][n][i], f * sum[0][n][4 + i], f * sum[1][n][i], f * sum[1][n][4 + i]);
                to[16 * n + 1] =
                    make_float4(f * sum[2][n][i], f * sum[2][n][4 + i], f * sum[3][n][i], f * sum[3][n][4 + i]);
            }
    }
}

template <int MW, int NW, int NT, int STAGES, int RESIDENT>
__global__ void __launch_bounds__(32 * MW * NW, RESIDENT) dense_tensor(const __grid_constant__ operands a) {
#if __CUDA_ARCH__ >= 800
    typedef tiles<MW, NW, NT, STAGES> l;
    extern __shared__ __align__(16) float4 stages[];
    const place at = place_of<l>(a);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int column = warp / MW * 8 * NT, tile = warp % MW;
    float sum[BINS][NT][8];
#pragma unroll
    for (int b = 0; b < BINS; b++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum[b][n][i] = 0.0f;
    pdl_trigger();
    pdl_wait();
    const auto prepare = [](float4 *stage) {
        with_own_chunks<l>([stage](int, int c) {
            const int near = own_chunk<l>(c), far = near + 4 * l::x_row; /* two bins of inputs k and k + 4 */
            const float scale =
                scale_of(((const unsigned *)(stage + l::peaks))[threadIdx.x / 32 % 4 * 2 * l::columns + c]);
            const float4 x = stage[near], y = stage[far];
            const uint2 x0 = split_number(x.x, x.y, scale), y0 = split_number(y.x, y.y, scale);
            const uint2 x1 = split_number(x.z, x.w, scale), y1 = split_number(y.z, y.w, scale);
            *(uint4 *)(stage + near) = make_uint4(x0.x, y0.x, x0.y, y0.y);
            *(uint4 *)(stage + far) = make_uint4(x1.x, y1.x, x1.y, y1.y);
        });
    };
    sum_stages<l, STAGES>(stages, a, at, prepare, [&](const float4 *stage) {
        const uint4 *h = (const uint4 *)stage + tile * TILE_CHUNKS;
        const uint4 *x = (const uint4 *)stage + l::h_chunks + x_chunk(l::x_row, t, column + g, 0);
        const int other = 1 - 2 * (t / 2); /* from chunk 0 to chunk 1 of a column */
        const unsigned *peaks = (const unsigned *)(stage + l::peaks) + 2 * column + 4 * t;
        float2 factor[NT];
#pragma unroll
        for (int n = 0; n < NT; n++)
            factor[n] = make_float2(unscale_of(peaks[16 * n]), unscale_of(peaks[16 * n + 2]));
#pragma unroll
        for (int bin = 0; bin < BINS; bin++) {
            asm volatile("" ::: "memory"); /* no register is free for the numbers of the next bin */
            uint4 columns[NT];
#pragma unroll
            for (int n = 0; n < NT; n++)
                columns[n] = x[16 * n + bin / 2 * other + bin % 2 * 4 * l::x_row];
            add_product<NT>(sum[bin], h[tile_chunk(bin, g, t)], h[tile_chunk(bin, g, t + 4)], columns, factor);
        }
    });
    store_sums<NT>(a, at.group, (at.tile + tile) * 16 + g, at.column + column + 2 * t, sum);
#endif
}

template <int MW, int NW, int NT, int RESIDENT> constexpr dense_form form() {
    typedef tiles<MW, NW, NT, 3> l;
    return dense_form{l::rows, l::columns, l::bytes, [](const operands &a, int64_t points, cudaStream_t stream) {
                          return launch_product<l>(dense_tensor<MW, NW, NT, 3, RESIDENT>, a, points, stream);
                      }};
}

const dense_form forms[] = {form<1, 4, 1, 4>(), form<1, 4, 2, 3>(), form<2, 2, 1, 4>(), form<2, 2, 2, 3>(),
                            form<4, 1, 1, 4>(), form<4, 1, 2, 3>(), form<4, 1, 3, 3>()};

} // namespace

const dense_form *dense_tensor_forms(int *count) {
    *count = sizeof forms / sizeof *forms;
    return forms;
}

cudaError_t dense_tensor_is_compiled(bool *compiled) {
    int architecture = 0;
    cudaError_t err = compiled_architecture((const void *)dense_tensor<4, 1, 3, 3, 3>, &architecture);
    *compiled = architecture >= 80;
    return err;
}
