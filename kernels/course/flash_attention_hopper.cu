/*
 * Attention with Hopper's own instructions, for sm_90a: 128 queries a block, half in, float out.
 *
 * One thread only fetches, through the tensor memory accelerator: the queries once, then blocks of 128 keys and values
 * through two stages each. Two warpgroups multiply, 64 queries each, straight out of shared memory. In a warpgroup the
 * tensor cores are handed the scores of the next block of keys and the weighted values of this one, and while they do
 * the second, the softmax of the first is under way:
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
enum { PIECE = 128 * 64 * 2, TILE = 2 * PIECE, SWIZZLE = 1024, SHARED = TILE + 2 * STAGES * TILE + SWIZZLE };

/* Barriers, eight bytes apart. */
enum {
    Q_FULL,
    K_FULL,
    K_EMPTY = K_FULL + STAGES,
    V_FULL = K_EMPTY + STAGES,
    V_EMPTY = V_FULL + STAGES,
    BARRIERS = V_EMPTY + STAGES
};

struct place {
    unsigned queries, keys, values, barriers;
    int head, first, blocks;
    int64_t tokens;
};

/* 128 rows of 128 numbers: two pieces of 64 columns. */
__device__ __forceinline__ void fetch_tile(unsigned to, const CUtensorMap *map, int row, int head, unsigned full) {
    tma::expect(full, TILE);
    tma::fetch(to, map, 0, row, head, full);
    tma::fetch(to + PIECE, map, 64, row, head, full);
}

__device__ void fetch_all(const place &p, const CUtensorMap *q, const CUtensorMap *k, const CUtensorMap *v) {
    fetch_tile(p.queries, q, p.first, p.head, p.barriers + 8 * Q_FULL);
    for (int j = 0; j < p.blocks; j++) {
        const unsigned stage = j % STAGES, parity = j / STAGES % 2 ^ 1; /* the phase before the first counts as ended */
        tma::wait(p.barriers + 8 * (K_EMPTY + stage), parity);
        fetch_tile(p.keys + stage * TILE, k, j * KEYS, p.head, p.barriers + 8 * (K_FULL + stage));
        tma::wait(p.barriers + 8 * (V_EMPTY + stage), parity);
        fetch_tile(p.values + stage * TILE, v, j * KEYS, p.head, p.barriers + 8 * (V_FULL + stage));
    }
}

__device__ void multiply_all(const place &p, float *o) {
    const float to_power = 1.4426950408889634f * 0.08838834764831845f; /* exp(s / sqrt(d)) as a power of two */
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    float s[64], out[64], most[2] = {-INFINITY, -INFINITY}, sum[2] = {}, fade[2];
    unsigned weights[KEYS / 16][4];

    auto release = [&](int barrier) {
        if (lane == 0)
            tma::arrive(p.barriers + 8 * barrier);
    };
    auto begin_scores = [&](int j) {
        const unsigned stage = j % STAGES;
        tma::wait(p.barriers + 8 * (K_FULL + stage), j / STAGES % 2);
        wgmma::touch(s);
        wgmma::fence();
#pragma unroll
        for (int e = 0; e < D / 16; e++)
            wgmma::multiply_128_along(s, wgmma::along(p.queries + e / 4 * PIECE + group * 64 * 128 + e % 4 * 32),
                                      wgmma::along(p.keys + stage * TILE + e / 4 * PIECE + e % 4 * 32), e > 0);
        wgmma::commit();
    };
    auto begin_output = [&](int j) {
        const unsigned stage = j % STAGES;
        tma::wait(p.barriers + 8 * (V_FULL + stage), j / STAGES % 2);
        wgmma::touch(out);
        wgmma::fence();
#pragma unroll
        for (int e = 0; e < KEYS / 16; e++)
            wgmma::multiply_128_registers(out, weights[e], wgmma::down(p.values + stage * TILE + e * 16 * 128, PIECE));
        wgmma::commit();
    };
    /* The scores become weights; what was summed under the old maximum is to fade by fade[]. */
    auto soften = [&](int j) {
        const int64_t left = p.tokens - (int64_t)j * KEYS;
        if (left < KEYS) { /* keys past the end weigh nothing */
#pragma unroll
            for (int i = 0; i < 64; i++)
                if (i / 4 * 8 + lane % 4 * 2 + i % 2 >= left)
                    s[i] = -INFINITY;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float high = most[h], add = 0.0f;
#pragma unroll
            for (int n = 0; n < 16; n++)
                high = fmaxf(high, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
            high = softmax::of_row(high, true);
            fade[h] = softmax::power_of_two((most[h] - high) * to_power);
            most[h] = high;
            const float from = high * to_power;
#pragma unroll
            for (int n = 0; n < 16; n++) {
                s[4 * n + 2 * h] = softmax::power_of_two(fmaf(s[4 * n + 2 * h], to_power, -from));
                s[4 * n + 2 * h + 1] = softmax::power_of_two(fmaf(s[4 * n + 2 * h + 1], to_power, -from));
                add += s[4 * n + 2 * h] + s[4 * n + 2 * h + 1];
            }
            sum[h] = sum[h] * fade[h] + add; /* of this lane's columns; the four lanes meet at the end */
        }
    };
    auto keep_weights = [&] {
#pragma unroll
        for (int e = 0; e < KEYS / 16; e++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                weights[e][i] = softmax::pack(s[8 * e + 2 * i], s[8 * e + 2 * i + 1]);
    };

#pragma unroll
    for (int i = 0; i < 64; i++)
        out[i] = 0.0f;
    tma::wait(p.barriers + 8 * Q_FULL, 0);
    begin_scores(0);
    wgmma::wait<0>();
    wgmma::touch(s);
    release(K_EMPTY);
    soften(0);
    keep_weights();
    for (int j = 0; j + 1 < p.blocks; j++) {
        begin_scores(j + 1);
        begin_output(j);
        wgmma::wait<1>(); /* the scores are there; the output is still under way */
        wgmma::touch(s);
        release(K_EMPTY + (j + 1) % STAGES);
        soften(j + 1);
        wgmma::wait<0>();
        wgmma::touch(out);
        release(V_EMPTY + j % STAGES);
#pragma unroll
        for (int i = 0; i < 64; i++)
            out[i] *= fade[i / 2 % 2];
        keep_weights();
    }
    begin_output(p.blocks - 1);
    wgmma::wait<0>();
    wgmma::touch(out);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int64_t i = p.first + group * 64 + warp * 16 + h * 8 + lane / 4;
        const float all = 1.0f / softmax::of_row(sum[h], false);
        if (i >= p.tokens)
            continue;
        float *to = o + ((int64_t)p.head * p.tokens + i) * D + lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < 16; n++)
            *(float2 *)(to + 8 * n) = make_float2(out[4 * n + 2 * h] * all, out[4 * n + 2 * h + 1] * all);
    }
}

__global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
              const __grid_constant__ CUtensorMap v, float *o, int64_t tokens) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) uint64_t barriers[BARRIERS];
    place p;
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
            fetch_all(p, &q, &k, &v);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        multiply_all(p, o);
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
