/*
 * Attention with Hopper's own instructions, for sm_90a: 128 queries per block, half-precision inputs, float output.
 *
 * One thread only loads tiles with the tensor memory accelerator: the queries once, then blocks of 128 keys and values,
 * which pass through two stages each. Two warpgroups multiply, for 64 queries each, with operands in shared memory. A
 * warpgroup starts the product for the scores of the next block of keys and the product of the present weights with
 * their values; while the tensor cores compute the second, the warps compute the softmax of the first:
 *
 *      tensor cores:   S(j + 1)  |  O += P(j) V(j)        |  S(j + 2)  | ...
 *      arithmetic:               |  softmax of S(j + 1)   |
 */
#include "course.cuh"
#include "kernels/device/softmax.cuh"
#include "kernels/device/tma.cuh"
#include "kernels/device/wgmma.cuh"

using namespace course;

namespace {

enum { D = 128, QUERIES = 128, KEYS = 128, THREADS = 384, STAGES = 2, MULTIPLYING_WARPS = 8 };
enum { HALF_TILE = 128 * 64 * 2, TILE = 2 * HALF_TILE, SWIZZLE = 1024, SHARED = TILE + 2 * STAGES * TILE + SWIZZLE };

/* Indices of the barriers, which are eight bytes apart. */
enum {
    Q_FULL,
    K_FULL,
    K_EMPTY = K_FULL + STAGES,
    V_FULL = K_EMPTY + STAGES,
    V_EMPTY = V_FULL + STAGES,
    BARRIERS = V_EMPTY + STAGES
};

struct block_state {
    unsigned queries, keys, values, barriers;
    int head, first, blocks;
    int64_t tokens;
};

/* Loads 128 rows of 128 numbers, as two halves of 64 columns. */
__device__ __forceinline__ void load_tile(unsigned to, const CUtensorMap *map, int row, int head, unsigned full) {
    tma::expect(full, TILE);
    tma::fetch(to, map, 0, row, head, full);
    tma::fetch(to + HALF_TILE, map, 64, row, head, full);
}

__device__ void load_tiles(const block_state &p, const CUtensorMap *q, const CUtensorMap *k, const CUtensorMap *v) {
    load_tile(p.queries, q, p.first, p.head, p.barriers + 8 * Q_FULL);
    for (int j = 0; j < p.blocks; j++) {
        /* the phase before the first counts as complete */
        const unsigned stage = j % STAGES, parity = j / STAGES % 2 ^ 1;
        tma::wait(p.barriers + 8 * (K_EMPTY + stage), parity);
        load_tile(p.keys + stage * TILE, k, j * KEYS, p.head, p.barriers + 8 * (K_FULL + stage));
        tma::wait(p.barriers + 8 * (V_EMPTY + stage), parity);
        load_tile(p.values + stage * TILE, v, j * KEYS, p.head, p.barriers + 8 * (V_FULL + stage));
    }
}

/* Lets the loading thread fill the stage of a barrier again. */
__device__ __forceinline__ void release(const block_state &p, int barrier) {
    if (threadIdx.x % 32 == 0)
        tma::arrive(p.barriers + 8 * barrier);
}

/* Starts the product of the warpgroup's queries with block j of the keys. */
__device__ __forceinline__ void begin_scores(const block_state &p, int group, int j, float (&s)[64]) {
    const unsigned stage = j % STAGES;
    tma::wait(p.barriers + 8 * (K_FULL + stage), j / STAGES % 2);
    wgmma::touch(s);
    wgmma::fence();
#pragma unroll
    for (int e = 0; e < D / 16; e++)
        wgmma::multiply_128_along(s, wgmma::along(p.queries + e / 4 * HALF_TILE + group * 64 * 128 + e % 4 * 32),
                                  wgmma::along(p.keys + stage * TILE + e / 4 * HALF_TILE + e % 4 * 32), e > 0);
    wgmma::commit();
}

/* Starts the product of the weights with block j of the values, which is added to the output. */
__device__ __forceinline__ void begin_output(const block_state &p, const unsigned (&weights)[KEYS / 16][4], int j,
                                             float (&out)[64]) {
    const unsigned stage = j % STAGES;
    tma::wait(p.barriers + 8 * (V_FULL + stage), j / STAGES % 2);
    wgmma::touch(out);
    wgmma::fence();
#pragma unroll
    for (int e = 0; e < KEYS / 16; e++)
        wgmma::multiply_128_registers(out, weights[e], wgmma::down(p.values + stage * TILE + e * 16 * 128, HALF_TILE));
    wgmma::commit();
}

/* The online softmax of the two rows of a lane. */
struct lane_softmax {
    float row_max[2] = {-INFINITY, -INFINITY};
    float sum[2] = {}; /* of this lane's columns; the sums of four lanes are added at the end */
    float rescale[2];  /* the factor for sums under the previous maximum */

    /* Replaces the scores of one block of keys, of which the first `keys_remaining` exist, by weights. */
    __device__ __forceinline__ void step(float (&s)[64], int64_t keys_remaining) {
        const float exponent_scale = 1.4426950408889634f * 0.08838834764831845f; /* exp(s / sqrt(d)) = 2^(scale s) */
        if (keys_remaining < KEYS) { /* keys past the last token get the weight zero */
            const int lane = threadIdx.x % 32;
#pragma unroll
            for (int i = 0; i < 64; i++)
                if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= keys_remaining)
                    s[i] = -INFINITY;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float new_max = row_max[h], block_sum = 0.0f;
#pragma unroll
            for (int n = 0; n < 16; n++)
                new_max = fmaxf(new_max, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
            new_max = softmax::of_row(new_max, true);
            rescale[h] = softmax::power_of_two((row_max[h] - new_max) * exponent_scale);
            row_max[h] = new_max;
            const float scaled_max = new_max * exponent_scale;
#pragma unroll
            for (int n = 0; n < 16; n++) {
                s[4 * n + 2 * h] = softmax::power_of_two(fmaf(s[4 * n + 2 * h], exponent_scale, -scaled_max));
                s[4 * n + 2 * h + 1] = softmax::power_of_two(fmaf(s[4 * n + 2 * h + 1], exponent_scale, -scaled_max));
                block_sum += s[4 * n + 2 * h] + s[4 * n + 2 * h + 1];
            }
            sum[h] = sum[h] * rescale[h] + block_sum;
        }
    }
};

/* Rounds the weights to pairs of halves, as the second product needs them. */
__device__ __forceinline__ void pack_weights(unsigned (&weights)[KEYS / 16][4], const float (&s)[64]) {
#pragma unroll
    for (int e = 0; e < KEYS / 16; e++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            weights[e][i] = softmax::pack(s[8 * e + 2 * i], s[8 * e + 2 * i + 1]);
}

__device__ void multiply_tiles(const block_state &p, float *o) {
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    float s[64], out[64];
    lane_softmax rows;
    unsigned weights[KEYS / 16][4];
#pragma unroll
    for (int i = 0; i < 64; i++)
        out[i] = 0.0f;
    tma::wait(p.barriers + 8 * Q_FULL, 0);
    begin_scores(p, group, 0, s);
    wgmma::wait<0>();
    wgmma::touch(s);
    release(p, K_EMPTY);
    rows.step(s, p.tokens);
    pack_weights(weights, s);
    for (int j = 0; j + 1 < p.blocks; j++) {
        begin_scores(p, group, j + 1, s);
        begin_output(p, weights, j, out);
        wgmma::wait<1>(); /* the scores are complete; the output is still in flight */
        wgmma::touch(s);
        release(p, K_EMPTY + (j + 1) % STAGES);
        rows.step(s, p.tokens - (int64_t)(j + 1) * KEYS);
        wgmma::wait<0>();
        wgmma::touch(out);
        release(p, V_EMPTY + j % STAGES);
#pragma unroll
        for (int i = 0; i < 64; i++)
            out[i] *= rows.rescale[i / 2 % 2];
        pack_weights(weights, s);
    }
    begin_output(p, weights, p.blocks - 1, out);
    wgmma::wait<0>();
    wgmma::touch(out);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int64_t i = p.first + group * 64 + warp * 16 + h * 8 + lane / 4;
        const float inverse_sum = 1.0f / softmax::of_row(rows.sum[h], false);
        if (i >= p.tokens)
            continue;
        float *to = o + ((int64_t)p.head * p.tokens + i) * D + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < 16; n++)
            *(float2 *)(to + 8 * n) =
                make_float2(out[4 * n + 2 * h] * inverse_sum, out[4 * n + 2 * h + 1] * inverse_sum);
    }
}

__global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
              const __grid_constant__ CUtensorMap v, float *o, int64_t tokens) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) uint64_t barriers[BARRIERS];
    block_state p;
    p.queries = (tma::address(memory) + SWIZZLE - 1) / SWIZZLE * SWIZZLE;
    p.keys = p.queries + TILE;
    p.values = p.keys + STAGES * TILE;
    p.barriers = tma::address(barriers);
    p.head = blockIdx.y;
    p.first = blockIdx.x * QUERIES;
    p.blocks = (int)((tokens + KEYS - 1) / KEYS);
    p.tokens = tokens;
    if (threadIdx.x == 0) {
        for (int i = 0; i < BARRIERS; i++)
            tma::barrier_new(p.barriers + 8 * i, (i >= K_EMPTY && i < V_FULL) || i >= V_EMPTY ? MULTIPLYING_WARPS : 1);
        tma::barriers_made();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0)
            load_tiles(p, &q, &k, &v);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        multiply_tiles(p, o);
    }
}

} // namespace

LAB_LAUNCHER(gck_attention_wgmma) {
    if (run->capability != 90)
        return LAB_CANNOT;
    CUtensorMap map[3];
    const cuuint64_t size[3] = {D, (cuuint64_t)run->size[0], (cuuint64_t)run->size[1]};
    const cuuint64_t strides[2] = {D * 2, (cuuint64_t)run->size[0] * D * 2};
    const cuuint32_t box[3] = {64, 128, 1};
    int err = 0;
    for (int i = 0; !err && i < 3; i++)
        err = tma::describe(&map[i], run->buffer[i], 3, size, strides, box);
    if (!err)
        err = cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (err)
        return err;
    attention<<<dim3(ceil_div(run->size[0], QUERIES), (unsigned)run->size[1]), THREADS, SHARED, stream(run)>>>(
        map[0], map[1], map[2], buffer<float>(run, 3), run->size[0]);
    return cudaGetLastError();
}
