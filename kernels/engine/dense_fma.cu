/*
 * The products of dense matrices on multiply-adds (dense.h).
 *
 * A warp computes 16 outputs x 8 NT columns of four bins. Lane b + 4 m + 8 n has bin b, eight outputs and 2 NT columns:
 * an access to shared memory by all lanes is 128 bytes.
 */
#include "dense_product.cuh"

#include "kernels/device/complex.cuh"

namespace {

using namespace dense;

enum { STAGES = 2 }; /* 64 KB */

template <int MW, int NW, int NT, int RESIDENT>
__global__ void __launch_bounds__(32 * MW * NW, RESIDENT) dense_fma(const __grid_constant__ operands a) {
    typedef tiles<MW, NW, NT, STAGES> l;
    extern __shared__ __align__(16) float4 stages[];
    const place at = place_of<l>(a);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int bin = lane % 4, row = lane / 4 % 2 * 4, n0 = warp / MW * 8 * NT + lane / 8, tile = warp % MW;
    float2 sum[4][2][2 * NT]; /* outputs row + r and row + r + 8, columns n0 + 4 c */
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 2 * NT; c++)
            sum[r][0][c] = sum[r][1][c] = make_float2(0.0f, 0.0f);
    pdl_trigger();
    pdl_wait();
    sum_stages<l, STAGES>(
        stages, a, at, [](float4 *) {},
        [&](const float4 *stage) {
            const float4 *h = stage + tile * TILE_CHUNKS;
            const float2 *x = (const float2 *)(stage + l::h_chunks);
#pragma unroll
            for (int k = 0; k < STEP; k++) {
                const float2 *from = x + 2 * x_chunk(l::x_row, k, n0, bin / 2) + bin % 2;
                float2 v[2 * NT];
#pragma unroll
                for (int c = 0; c < 2 * NT; c++)
                    v[c] = from[16 * c];
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const float4 w = h[tile_chunk(bin, row + r, k)];
#pragma unroll
                    for (int c = 0; c < 2 * NT; c++) {
                        sum[r][0][c] = mul_add(make_float2(w.x, w.y), v[c], sum[r][0][c]);
                        sum[r][1][c] = mul_add(make_float2(w.z, w.w), v[c], sum[r][1][c]);
                    }
                }
            }
        });
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const int o = (at.tile + tile) * 16 + row + r % 4 + r / 4 * 8;
        float2 *to = a.sums +
                     ((at.group * a.all_outputs + a.first_output + o) * (int64_t)a.blocks + at.column + n0) * BINS +
                     bin;
#pragma unroll
        for (int c = 0; c < 2 * NT; c++)
            if (o < a.outputs && at.column + n0 + 4 * c < a.blocks)
                to[16 * c] = sum[r % 4][r / 4][c];
    }
}

template <int MW, int NW, int NT, int RESIDENT> constexpr dense_form form() {
    typedef tiles<MW, NW, NT, STAGES> l;
    static_assert(l::bytes <= 64 * 1024, "every device has 64 KB");
    return dense_form{l::rows, l::columns, l::bytes, [](const operands &a, int64_t points, cudaStream_t stream) {
                          return launch_product<l>(dense_fma<MW, NW, NT, RESIDENT>, a, points, stream);
                      }};
}

const dense_form forms[] = {form<1, 4, 1, 3>(), form<1, 4, 3, 2>(), form<2, 2, 1, 3>(),
                            form<2, 2, 3, 2>(), form<4, 1, 1, 3>(), form<4, 2, 3, 1>()};

} // namespace

const dense_form *dense_fma_forms(int *count) {
    *count = sizeof forms / sizeof *forms;
    return forms;
}
