/*
 * Attention on tensor cores with mma: a block of four warps keeps 128 queries in shared memory, 32 for each warp.
 * Blocks of 64 keys and values pass through two stages of shared memory: the next is copied while the present one is
 * used.
 *
 *      scores: 32 x 64 in registers = queries x keys, both read with ldmatrix (a row of K is a column of K')
 *      output: 32 x 128 in registers += weights x values; the weights are in the lanes as mma needs its left operand,
 *              and ldmatrix transposes the values
 *
 * In each tile of 16 x 8 sums, lane l of a warp has the columns 2 (l % 4) + 0, 1 of the rows l / 4 and l / 4 + 8.
 * Rows in shared memory are 272 bytes apart, so that eight of them begin in different banks.
 */
#include "course.cuh"
#include "kernels/device/softmax.cuh"
#include "matmul.cuh"

#include <cuda_fp16.h>

using namespace course;

namespace {

enum { D = 128, QUERIES = 128, KEYS = 64, THREADS = 128, ROW_STRIDE = D + 8, STAGE = 2 * KEYS * ROW_STRIDE };
enum { SHARED = (QUERIES * ROW_STRIDE + 2 * STAGE) * (int)sizeof(half) };

/* Starts to copy ROWS rows to shared memory. Rows from number `rows_remaining` on become zero. */
template <int ROWS> __device__ __forceinline__ void start_copy(const half *src, int rows_remaining, half *dst) {
    const int row = threadIdx.x / (D / 8), e = threadIdx.x % (D / 8) * 8, step = THREADS / (D / 8);
    src += row * D + e;
    dst += row * ROW_STRIDE + e;
#pragma unroll
    for (int i = 0; i < ROWS; i += step) {
        bool inside = row + i < rows_remaining;
        copy_async<16>(dst + i * ROW_STRIDE, inside ? src + i * D : src, inside);
    }
}

/* Loads four matrices of 8 x 8 halves from shared memory, each transposed if TRANSPOSED; lane l passes the address of
 * row l % 8 of matrix l / 8. */
template <bool TRANSPOSED> __device__ __forceinline__ void load_matrices(unsigned (&r)[4], const half *at) {
#if __CUDA_ARCH__ >= 800
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(at)));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(shared_address(at)));
#endif
}

/* c += a b for a tile of 16 x 8, with a of 16 x 16 and b of 16 x 8. */
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* Gives keys past the last token the weight zero. */
__device__ __forceinline__ void mask_keys(float (&s)[2][8][4], int keys_remaining) {
    const int lane = threadIdx.x % 32;
    if (keys_remaining < KEYS) {
#pragma unroll
        for (int n = 0; n < 8; n++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                if (8 * n + lane % 4 * 2 + c % 2 >= keys_remaining)
                    s[0][n][c] = s[1][n][c] = -INFINITY;
    }
}

/* The step of the online softmax for the rows of a lane. Replaces the scores by weights, and rescales the output and
 * the sums of the weights. */
__device__ __forceinline__ void softmax_step(float (&s)[2][8][4], float (&out)[2][16][4], float (&row_max)[2][2],
                                             float (&sum)[2][2]) {
    /* exp(s / sqrt(d)) = 2^(exponent_scale s) */
    const float exponent_scale = 1.4426950408889634f * 0.08838834764831845f;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float new_max = row_max[r][h], block_sum = 0.0f;
#pragma unroll
            for (int n = 0; n < 8; n++)
                new_max = fmaxf(new_max, fmaxf(s[r][n][2 * h], s[r][n][2 * h + 1]));
            new_max = softmax::of_row(new_max, true);
            float rescale = softmax::power_of_two((row_max[r][h] - new_max) * exponent_scale),
                  scaled_max = new_max * exponent_scale;
            row_max[r][h] = new_max;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                s[r][n][2 * h] = softmax::power_of_two(fmaf(s[r][n][2 * h], exponent_scale, -scaled_max));
                s[r][n][2 * h + 1] = softmax::power_of_two(fmaf(s[r][n][2 * h + 1], exponent_scale, -scaled_max));
                block_sum += s[r][n][2 * h] + s[r][n][2 * h + 1];
            }
            /* the sum of this lane's columns; the sums of four lanes are added at the end */
            sum[r][h] = sum[r][h] * rescale + block_sum;
#pragma unroll
            for (int n = 0; n < 16; n++) {
                out[r][n][2 * h] *= rescale;
                out[r][n][2 * h + 1] *= rescale;
            }
        }
}

/* Divides the output of a warp by the sums of the weights and stores it. */
__device__ __forceinline__ void store_output(float *o, int first, int tokens, const float (&out)[2][16][4],
                                             const float (&sum)[2][2]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = first + warp * 32 + r * 16 + h * 8 + lane / 4;
            float inverse_sum = 1.0f / softmax::of_row(sum[r][h], false);
            if (i >= tokens)
                continue;
#pragma unroll
            for (int n = 0; n < 16; n++)
                *(float2 *)(o + ((int64_t)blockIdx.y * tokens + i) * D + 8 * n + lane % 4 * 2) =
                    make_float2(out[r][n][2 * h] * inverse_sum, out[r][n][2 * h + 1] * inverse_sum);
        }
}

/* Rounds the weights of keys 16 j to 16 j + 15 to halves, as mma needs its left operand. */
__device__ __forceinline__ void pack_weights(unsigned (&a)[4], const float (&s)[8][4], int j) {
    a[0] = softmax::pack(s[2 * j][0], s[2 * j][1]);
    a[1] = softmax::pack(s[2 * j][2], s[2 * j][3]);
    a[2] = softmax::pack(s[2 * j + 1][0], s[2 * j + 1][1]);
    a[3] = softmax::pack(s[2 * j + 1][2], s[2 * j + 1][3]);
}

/* The two products are not split into functions: the compiler would allocate registers differently. */
__global__ void __launch_bounds__(THREADS, 2)
    attention(const half *q, const half *k, const half *v, float *o, int tokens) {
    extern __shared__ __align__(128) half memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, octet = lane / 8, in_octet = lane % 8;
    const int first = blockIdx.x * QUERIES;
    half *stages = memory + QUERIES * ROW_STRIDE;
    /* The addresses that a lane passes to ldmatrix. Of queries and values, the second octet of lanes reads 8 rows
     * further and the third 8 columns further; of keys the second reads 8 columns and the third 8 rows further. */
    const half *lane_queries = memory + (warp * 32 + octet % 2 * 8 + in_octet) * ROW_STRIDE + octet / 2 * 8;
    const int lane_keys = (octet / 2 * 8 + in_octet) * ROW_STRIDE + octet % 2 * 8;
    const int lane_values = KEYS * ROW_STRIDE + (octet % 2 * 8 + in_octet) * ROW_STRIDE + octet / 2 * 8;
    float out[2][16][4] = {}, row_max[2][2], sum[2][2] = {};
#pragma unroll
    for (int r = 0; r < 4; r++)
        row_max[r / 2][r % 2] = -INFINITY;

    q += ((int64_t)blockIdx.y * tokens + first) * D;
    k += (int64_t)blockIdx.y * tokens * D;
    v += (int64_t)blockIdx.y * tokens * D;
    start_copy<QUERIES>(q, tokens - first, memory);
    start_copy<KEYS>(k, tokens, stages);
    start_copy<KEYS>(v, tokens, stages + KEYS * ROW_STRIDE);
    copy_group();
    int stage_offset = 0;
#pragma unroll 1
    for (int keys_remaining = tokens; keys_remaining > 0; keys_remaining -= KEYS) {
        /* waits until this stage is complete and all warps have finished with the other one, which is filled next */
        copy_wait<0>();
        __syncthreads();
        const half *stage = stages + stage_offset;
        stage_offset = STAGE - stage_offset;
        k += KEYS * D;
        v += KEYS * D;
        if (keys_remaining > KEYS) {
            start_copy<KEYS>(k, keys_remaining - KEYS, stages + stage_offset);
            start_copy<KEYS>(v, keys_remaining - KEYS, stages + stage_offset + KEYS * ROW_STRIDE);
        }
        copy_group();

        float s[2][8][4] = {};
#pragma unroll
        for (int e = 0; e < D / 16; e++) {
            unsigned a[2][4];
            load_matrices<false>(a[0], lane_queries + e * 16);
            load_matrices<false>(a[1], lane_queries + 16 * ROW_STRIDE + e * 16);
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                unsigned b[4];
                load_matrices<false>(b, stage + lane_keys + n * 16 * ROW_STRIDE + e * 16);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    multiply(s[r][2 * n], a[r], b[0], b[1]);
                    multiply(s[r][2 * n + 1], a[r], b[2], b[3]);
                }
            }
        }
        mask_keys(s, keys_remaining);
        softmax_step(s, out, row_max, sum);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            unsigned a[2][4];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                pack_weights(a[r], s[r], j);
            }
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                unsigned b[4];
                load_matrices<true>(b, stage + lane_values + j * 16 * ROW_STRIDE + n * 16);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    multiply(out[r][2 * n], a[r], b[0], b[1]);
                    multiply(out[r][2 * n + 1], a[r], b[2], b[3]);
                }
            }
        }
    }
    store_output(o, first, tokens, out, sum);
}

} // namespace

LAB_LAUNCHER(gck_attention_tensor) {
    if (run->capability < 80)
        return LAB_CANNOT;
    cudaError_t err = cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (err)
        return err;
    attention<<<dim3(ceil_div(run->size[0], QUERIES), (unsigned)run->size[1]), THREADS, SHARED, stream(run)>>>(
        buffer<const half>(run, 0), buffer<const half>(run, 1), buffer<const half>(run, 2), buffer<float>(run, 3),
        (int)run->size[0]);
    return cudaGetLastError();
}

LAB_FACTS(gck_attention_tensor_facts) {
    (void)run;
    return kernel_facts(attention, THREADS, SHARED, facts);
}
