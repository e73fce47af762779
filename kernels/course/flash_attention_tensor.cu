/*
 * Attention on tensor cores with mma: a block of four warps keeps 128 queries in shared memory, a warp 32 of them;
 * blocks of 64 keys and values pass through two stages of shared memory, the next copied while this one is used.
 *
 *      scores: 32 x 64 in registers = queries (ldmatrix) x keys (ldmatrix: a row is a column of K')
 *      output: 32 x 128 in registers += scores, which lie in the lanes as mma wants its left side x values (transposed
 * by ldmatrix on the way)
 *
 * Lane l of a warp holds, of every tile of 16 x 8 sums, row l / 4 and columns 2 (l % 4) + 0, 1, and the same 8 rows on.
 * Rows in shared memory are 272 bytes apart: eight of them begin in different banks.
 */
#include "course.cuh"
#include "kernels/device/softmax.cuh"
#include "matmul.cuh"

#include <cuda_fp16.h>

using namespace course;

namespace {

enum { D = 128, QUERIES = 128, KEYS = 64, THREADS = 128, ROW = D + 8, STAGE = 2 * KEYS * ROW };
enum { SHARED = (QUERIES * ROW + 2 * STAGE) * (int)sizeof(half) };

/* ROWS rows, of which the first `left` are there. */
template <int ROWS> __device__ __forceinline__ void fetch(const half *from, int left, half *to) {
    const int row = threadIdx.x / (D / 8), e = threadIdx.x % (D / 8) * 8, step = THREADS / (D / 8);
    from += row * D + e;
    to += row * ROW + e;
#pragma unroll
    for (int i = 0; i < ROWS; i += step) {
        bool inside = row + i < left;
        copy_async<16>(to + i * ROW, inside ? from + i * D : from, inside);
    }
}

template <bool TRANSPOSED> __device__ __forceinline__ void load_tiles(unsigned (&r)[4], const half *at) {
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

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

__global__ void __launch_bounds__(THREADS, 2)
    attention(const half *q, const half *k, const half *v, float *o, int tokens) {
    extern __shared__ __align__(128) half memory[];
    const float to_power = 1.4426950408889634f * 0.08838834764831845f; /* exp(s / sqrt(d)) as a power of two */
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, eighth = lane / 8, in_eighth = lane % 8;
    const int first = blockIdx.x * QUERIES;
    half *stages = memory + QUERIES * ROW;
    /* Where a lane reads in a tile: of queries and values, the second eighth of lanes is 8 rows on, the third 8
     * columns; of keys the other way round. */
    const half *qs = memory + (warp * 32 + eighth % 2 * 8 + in_eighth) * ROW + eighth / 2 * 8;
    const int of_keys = (eighth / 2 * 8 + in_eighth) * ROW + eighth % 2 * 8;
    const int of_values = KEYS * ROW + (eighth % 2 * 8 + in_eighth) * ROW + eighth / 2 * 8;
    float out[2][16][4] = {}, most[2][2], sum[2][2] = {};
#pragma unroll
    for (int r = 0; r < 4; r++)
        most[r / 2][r % 2] = -INFINITY;

    q += ((int64_t)blockIdx.y * tokens + first) * D;
    k += (int64_t)blockIdx.y * tokens * D;
    v += (int64_t)blockIdx.y * tokens * D;
    fetch<QUERIES>(q, tokens - first, memory);
    fetch<KEYS>(k, tokens, stages);
    fetch<KEYS>(v, tokens, stages + KEYS * ROW);
    copy_group();
    int now_at = 0;
#pragma unroll 1
    for (int left = tokens; left > 0; left -= KEYS) {
        copy_wait<0>(); /* this stage is here, and everyone has done with the other, which is filled anew */
        __syncthreads();
        const half *now = stages + now_at;
        now_at = STAGE - now_at;
        k += KEYS * D;
        v += KEYS * D;
        if (left > KEYS) {
            fetch<KEYS>(k, left - KEYS, stages + now_at);
            fetch<KEYS>(v, left - KEYS, stages + now_at + KEYS * ROW);
        }
        copy_group();

        float s[2][8][4] = {};
#pragma unroll
        for (int e = 0; e < D / 16; e++) {
            unsigned a[2][4];
            load_tiles<false>(a[0], qs + e * 16);
            load_tiles<false>(a[1], qs + 16 * ROW + e * 16);
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                unsigned b[4];
                load_tiles<false>(b, now + of_keys + n * 16 * ROW + e * 16);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    multiply(s[r][2 * n], a[r], b[0], b[1]);
                    multiply(s[r][2 * n + 1], a[r], b[2], b[3]);
                }
            }
        }
        if (left < KEYS) { /* keys past the end weigh nothing */
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    if (8 * n + lane % 4 * 2 + c % 2 >= left)
                        s[0][n][c] = s[1][n][c] = -INFINITY;
        }
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float high = most[r][h], add = 0.0f;
#pragma unroll
                for (int n = 0; n < 8; n++)
                    high = fmaxf(high, fmaxf(s[r][n][2 * h], s[r][n][2 * h + 1]));
                high = softmax::of_row(high, true);
                float fade = softmax::power_of_two((most[r][h] - high) * to_power), from = high * to_power;
                most[r][h] = high;
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    s[r][n][2 * h] = softmax::power_of_two(fmaf(s[r][n][2 * h], to_power, -from));
                    s[r][n][2 * h + 1] = softmax::power_of_two(fmaf(s[r][n][2 * h + 1], to_power, -from));
                    add += s[r][n][2 * h] + s[r][n][2 * h + 1];
                }
                sum[r][h] = sum[r][h] * fade + add; /* of this lane's columns; the four lanes meet at the end */
#pragma unroll
                for (int n = 0; n < 16; n++) {
                    out[r][n][2 * h] *= fade;
                    out[r][n][2 * h + 1] *= fade;
                }
            }
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            unsigned a[2][4];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                a[r][0] = softmax::pack(s[r][2 * j][0], s[r][2 * j][1]);
                a[r][1] = softmax::pack(s[r][2 * j][2], s[r][2 * j][3]);
                a[r][2] = softmax::pack(s[r][2 * j + 1][0], s[r][2 * j + 1][1]);
                a[r][3] = softmax::pack(s[r][2 * j + 1][2], s[r][2 * j + 1][3]);
            }
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                unsigned b[4];
                load_tiles<true>(b, now + of_values + j * 16 * ROW + n * 16);
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    multiply(out[r][2 * n], a[r], b[0], b[1]);
                    multiply(out[r][2 * n + 1], a[r], b[2], b[3]);
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = first + warp * 32 + r * 16 + h * 8 + lane / 4;
            float all = 1.0f / softmax::of_row(sum[r][h], false);
            if (i >= tokens)
                continue;
#pragma unroll
            for (int n = 0; n < 16; n++)
                *(float2 *)(o + ((int64_t)blockIdx.y * tokens + i) * D + 8 * n + lane % 4 * 2) =
                    make_float2(out[r][n][2 * h] * all, out[r][n][2 * h + 1] * all);
        }
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
