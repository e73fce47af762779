/*
 * The products of dense matrices (dense.h): the kernels on multiply-adds, and the choice of a kernel, on tensor cores
 * (dense_tensor.cu) or on multiply-adds, with the tiles that leave the fewest columns empty.
 *
 * A warp computes 16 outputs x 8 NT columns of four bins. Lane b + 4 m + 8 n has bin b, eight outputs and 2 NT columns:
 * an access to shared memory by all lanes is 128 bytes.
 *
 * What dense matrices buy: 2 to 14 times the speed of products one route at a time. These multiply-adds serve devices
 * without tensor cores, and take 0.6 to 1.2 times as long as cuBLAS (docs/experiments/dense.md).
 */
#include "dense.cuh"

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

/* Few outputs first, then few columns. */
const dense_form forms[] = {form<1, 4, 1, 3>(), form<1, 4, 3, 2>(), form<2, 2, 1, 3>(),
                            form<2, 2, 3, 2>(), form<4, 1, 1, 3>(), form<4, 2, 3, 1>()};

/* Returns the forms on multiply-adds or on tensor cores. */
const dense_form *find_forms(bool tensor_cores, int *count) {
    *count = sizeof forms / sizeof *forms;
    return tensor_cores ? dense_tensor_forms(count) : forms;
}

/* Returns the most shared memory that a form takes. */
int most_bytes(bool tensor_cores) {
    int count, bytes = 0;
    const dense_form *form = find_forms(tensor_cores, &count);
    for (int i = 0; i < count; i++)
        bytes = max(bytes, form[i].bytes);
    return bytes;
}

/* Returns the form with the fewest rows that are enough, and of these the one with the least work: a tile costs its
 * columns and about as much as eight more. */
const dense_form *choose(const dense_form *form, int count, int outputs, int blocks) {
    const dense_form *best = NULL;
    int64_t least = 0;
    for (int i = 0; i < count; i++) {
        if (best && best->rows >= outputs && form[i].rows > best->rows)
            break;
        const int64_t cost = (int64_t)((blocks + form[i].columns - 1) / form[i].columns) * (form[i].columns + 8);
        if (!best || form[i].rows > best->rows || cost < least) {
            best = form + i;
            least = cost;
        }
    }
    return best;
}

} // namespace

int gck_dense_product_bytes() {
    return most_bytes(false);
}

cudaError_t gck_dense_uses_tensor_cores(int *uses) {
    int number = 0;
    gck_device device = {};
    bool compiled = false;
    cudaError_t err = cudaGetDevice(&number);
    if (!err)
        err = gck_device_query(number, &device);
    if (!err)
        err = dense_tensor_is_compiled(&compiled);
    *uses = compiled && device.tensor_cores && device.architecture >= 80 && device.shared_bytes >= most_bytes(true);
    return err;
}

cudaError_t gck_dense_product(const gck_dense &a, const gck_dense_part &part, cudaStream_t stream) {
    const dense::operands o = {part.responses,
                               a.spectra,
                               a.sums,
                               a.tensor_cores ? a.peaks : NULL,
                               a.tensor_cores ? a.response_peaks + part.first_output : NULL,
                               part.first_input,
                               part.inputs,
                               part.first_output,
                               part.outputs,
                               a.inputs,
                               a.outputs,
                               a.partitions,
                               a.blocks + a.partitions - 1,
                               a.blocks};
    int count;
    const dense_form *form = find_forms(a.tensor_cores, &count);
    return choose(form, count, part.outputs, a.blocks)->launch(o, a.points, stream);
}
