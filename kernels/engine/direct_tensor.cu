/*
 * Direct convolution of one response of up to GCK_TENSOR_TAPS taps on tensor cores, to the precision of floats.
 *
 * A float is two halves: its nearest half, and what that leaves, rounded to a half too, 22 bits together. Of the four
 * products of two such pairs three are summed, in floats; the fourth is below the rounding of the result. So that
 * halves reach, a unit's samples are scaled by a power of two that brings the largest of them to 2^14, and so are the
 * taps.
 *
 *      y[n + 16 (TILES j + i) + p] = sum over k of H[p][k] X[k][j],    H[p][k] = h[p + L - k]
 *                                                                      X[k][j] = x[n + 16 (TILES j + i) + k - L]
 *
 * for phases p < 16, columns j < 8 and tiles i < TILES, k < L + 16: products of 16 x 16 and 16 x 8. L is a multiple of
 * 16, no less than the taps after the first. H is the same for all tiles and along its diagonals, so that one step of
 * 16 in k takes two new registers of it; X of tile i + 1 is X of tile i a step later, so that a step takes two new
 * registers of X for all tiles. The sums of a tile stay in the tensor cores' own accumulators, which cut instead of
 * rounding, for FLUSH steps only.
 *
 * Only where a tensor core sums halves in floats at many times the rate of the multiply-adds, that is, in data centres
 * (compute capability 8.0, 9.0, 10.x): elsewhere the kernels of direct.cu are as fast.
 *
 * A warp works alone: it owns two tiles of shared memory and fetches the next one asynchronously while it computes.
 */
#include "direct.cuh"
#include "launch.cuh"

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

enum { WARPS = 4, FLUSH = 4 };

/* Blocks a multiprocessor is to hold when the compiler does not know how many steps there are. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { MANY_STEPS = 2 };
#else
enum { MANY_STEPS = 3 };
#endif

/* TILES to a column; STEPS: of a length that is known when this is compiled, or 0. Few steps leave registers to more
 * warps. */
template <int TILES, int STEPS> struct shape {
    static const int column = 16 * TILES, unit = 8 * column;
    enum { steps = STEPS };
    static const int resident = STEPS == 0 ? MANY_STEPS : TILES == 4 ? 4 : 2;

    /* Eight columns read eight different groups of banks if they stand eight places further apart than they are long.
     */
    static constexpr __host__ __device__ int place(int i) {
        return i / column * (column + 8) + i % column;
    }

    /* Floats of a warp's tile, with what the last step reads ahead. */
    static constexpr __host__ __device__ int room(int reach) {
        return (place(unit + reach + 16) + 3) / 4 * 4;
    }
};

/* Entry k + AHEAD of a response's table: taps k and k - 1, their halves in x, what those leave in y; zeros in front, as
 * far as the last step reads ahead, and behind. Nobody reads entry 0: it holds the factor of the way back. */
enum { AHEAD = 32, BEHIND = 16 };

#if __CUDA_ARCH__ >= 800

__device__ __forceinline__ void multiply_add(float *sum, const unsigned *h, const unsigned *x) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %4}, {%7, %8}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(h[1]), "r"(h[0]), "r"(h[2]), "r"(x[0]), "r"(x[1]));
}

__device__ __forceinline__ void halves_of(float2 x, unsigned *high, unsigned *low) {
    __half2 near = __float22half2_rn(x);
    float2 there = __half22float2(near);
    __half2 rest = __float22half2_rn(make_float2(x.x - there.x, x.y - there.y));
    *high = *(unsigned *)&near;
    *low = *(unsigned *)&rest;
}

/* What brings floats of which the largest has the bits `most` to less than 2^15, and what takes them back. */
__device__ __forceinline__ float scale_of(unsigned most) {
    return __uint_as_float((268 - max(most >> 23, 32u)) << 23);
}

__device__ __forceinline__ float back_of(unsigned most) {
    return __uint_as_float((max(most >> 23, 32u) - 14) << 23);
}

__device__ __forceinline__ float larger(float most, float4 x) {
    return fmaxf(fmaxf(most, fmaxf(fabsf(x.x), fabsf(x.y))), fmaxf(fabsf(x.z), fabsf(x.w)));
}

/* tile[place(i)] = x[i], and zeros where the signal ends at `most`: taps that are zero meet them, and must not meet
 * what lay there before, which may be no number. */
template <typename Shape> __device__ __forceinline__ void fetch(float *tile, const float *x, int count, int64_t most) {
    const int lane = 4 * (threadIdx.x % 32), end = (int)min((int64_t)count, most);
#pragma unroll(Shape::steps ? 16 : 1)
    for (int i = 0; i < count; i += 128) {
        float *to = tile + Shape::place(i + lane);
        if (i + lane < end)
            __pipeline_memcpy_async(to, x + i + lane, 4 * sizeof(float));
        else if (i + lane < count)
            *(float4 *)to = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}

#endif

template <int TILES, int STEPS>
__global__ void __launch_bounds__(32 * WARPS, shape<TILES, STEPS>::resident)
    tensor_direct(gck_matrix a, int output, const uint2 *__restrict__ table, int longest, int64_t frames) {
#if __CUDA_ARCH__ >= 800
    typedef shape<TILES, STEPS> form;
    extern __shared__ __align__(16) float shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int steps = STEPS ? STEPS : longest, reach = 16 * (steps - 1);
    const int room = form::room(reach), whole = form::unit + reach;
    float *tiles = shared + 2 * warp * room;
    uint2 *pairs = (uint2 *)(shared + 2 * WARPS * room);
    const int64_t step = (int64_t)gridDim.x * WARPS * form::unit;
    output += blockIdx.y;
    const gck_route route = only_route(a, output);
    const float *in = a.in + route.input * a.in_stride - reach;
    table += (int64_t)route.plane * (AHEAD + reach + BEHIND);
    float *out = a.out + output * a.out_stride;
    int64_t n = ((int64_t)blockIdx.x * WARPS + warp) * form::unit;
    int side = 0;
    let_others_come();
    wait_for_others();
    if (n < frames)
        fetch<form>(tiles, in + n, whole, frames - n + reach);
    __pipeline_commit();
    const float back_taps = __uint_as_float(__ldg(&table->x));
    uint2 kept[STEPS ? 2 * STEPS + 1 : 1];
    if (STEPS) {
#pragma unroll
        for (int s = 0; s <= 2 * STEPS; s++)
            kept[s] = __ldg(table + AHEAD + reach + 8 + g - 2 * t - 8 * s);
    } else {
        for (int i = threadIdx.x; i < AHEAD + reach + BEHIND; i += 32 * WARPS)
            pairs[i] = __ldg(table + i);
        __syncthreads();
        pairs += AHEAD + reach + 8 + g - 2 * t;
    }
    auto pair = [&](int s) { return STEPS ? kept[min(s, 2 * STEPS)] : pairs[-8 * s]; };

#pragma unroll 1
    for (; n < frames; n += step) {
        const float *tile = tiles + side * room;
        side ^= 1;
        __pipeline_wait_prior(0);
        __syncwarp();
        if (n + step < frames)
            fetch<form>(tiles + side * room, in + n + step, whole, frames - n - step + reach);
        __pipeline_commit();
        float most = 0.0f;
#pragma unroll(STEPS ? 16 : 2)
        for (int i = 4 * lane; i < whole; i += 128)
            most = larger(most, *(const float4 *)(tile + form::place(i)));
        const unsigned bits = __reduce_max_sync(0xffffffffu, __float_as_uint(most));
        const float scale = scale_of(bits), back = back_of(bits) * back_taps;

        tile += (form::column + 8) * g + 2 * t;
        unsigned high[2 * TILES], low[2 * TILES], h_high[3], h_low[3];
        float sum[TILES][4];
        auto samples = [&](int s) { return *(const float2 *)(tile + form::place(8 * s)); };
        auto keep = [&](int slot, float2 x) {
            halves_of(make_float2(x.x * scale, x.y * scale), high + slot, low + slot);
        };
#pragma unroll
        for (int s = 0; s < 2 * TILES; s++)
            keep(s, samples(s));
#pragma unroll
        for (int s = 0; s < 3; s++) {
            h_high[s] = pair(s).x;
            h_low[s] = pair(s).y;
        }
#pragma unroll
        for (int i = 0; i < TILES; i++)
            sum[i][0] = sum[i][1] = sum[i][2] = sum[i][3] = 0.0f;
#pragma unroll(STEPS ? STEPS : 1)
        for (int first = 0; first < steps; first += FLUSH) {
            float large[TILES][4], small[TILES][4];
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    large[i][r] = small[i][r] = 0.0f;
#pragma unroll(STEPS ? FLUSH : 1)
            for (int q = first; q < min(first + FLUSH, steps); q++) {
                /* What the next step takes, read while this one's products are summed. */
                const float2 x0 = samples(2 * q + 2 * TILES), x1 = samples(2 * q + 2 * TILES + 1);
                const uint2 h1 = pair(2 * q + 3), h2 = pair(2 * q + 4);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    multiply_add(large[i], h_high, high + 2 * i);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    multiply_add(small[i], h_low, high + 2 * i);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    multiply_add(small[i], h_high, low + 2 * i);
#pragma unroll
                for (int s = 0; s < 2 * TILES - 2; s++) {
                    high[s] = high[s + 2];
                    low[s] = low[s + 2];
                }
                keep(2 * TILES - 2, x0);
                keep(2 * TILES - 1, x1);
                h_high[0] = h_high[2], h_high[1] = h1.x, h_high[2] = h2.x;
                h_low[0] = h_low[2], h_low[1] = h1.y, h_low[2] = h2.y;
            }
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    sum[i][r] += large[i][r] + small[i][r];
        }
        /* Phases g and g + 8 of columns 2 t and 2 t + 1; eight lanes write a sector. */
        const int at = 2 * t * form::column + g, left = (int)min(frames - n, (int64_t)form::unit) - at;
        float *y = out + n + at;
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int offset = 16 * i + r % 2 * form::column + r / 2 * 8;
                if (offset < left)
                    y[offset] = sum[i][r] * back;
            }
        __syncwarp(); /* the tile has been read */
    }
#endif
}

template <int TILES, int STEPS>
cudaError_t launch(const gck_matrix *matrix, int output, int together, const uint2 *table, int steps, int64_t frames,
                   cudaStream_t stream) {
    typedef shape<TILES, STEPS> form;
    const int reach = 16 * (steps - 1);
    const int bytes =
        2 * WARPS * form::room(reach) * (int)sizeof(float) + (AHEAD + reach + BEHIND) * (int)sizeof(uint2);
    const int64_t units = (frames + form::unit - 1) / form::unit;
    unsigned blocks = 0;
    cudaError_t failed = allow_shared(tensor_direct<TILES, STEPS>, bytes);
    if (!failed)
        failed = blocks_that_stay(tensor_direct<TILES, STEPS>, 32 * WARPS, bytes, (units + WARPS - 1) / WARPS, &blocks);
    if (failed)
        return failed;
    return launch_early(tensor_direct<TILES, STEPS>, dim3(blocks, (unsigned)together), 32 * WARPS, bytes, stream,
                        *matrix, output, table, steps, frames);
}

} // namespace

int gck_tensor_pays(int major, int minor) {
    return (major == 8 && minor == 0) || major == 9 || major == 10;
}

int64_t gck_tensor_table_size(int64_t count) {
    return count > GCK_TENSOR_LEAST && count <= GCK_TENSOR_TAPS ? AHEAD + (count - 1 + 15) / 16 * 16 + BEHIND : 0;
}

void gck_tensor_table(const float *taps, int64_t count, uint2 *table) {
    const int64_t size = gck_tensor_table_size(count);
    float most = 0;
    int exponent;
    for (int64_t k = 0; k < count; k++)
        most = fmaxf(most, fabsf(taps[k]));
    frexpf(most, &exponent);
    exponent = std::max(exponent, -100);
    for (int64_t i = 0; i < size; i++) {
        unsigned high[2], low[2];
        for (int64_t p = 0; p < 2; p++) {
            const int64_t k = i - AHEAD - p;
            const float h = k >= 0 && k < count ? ldexpf(taps[k], 15 - exponent) : 0;
            const __half_raw near = __float2half_rn(h), rest = __float2half_rn(h - __half2float(near));
            high[p] = near.x;
            low[p] = rest.x;
        }
        table[i] = make_uint2(high[0] | high[1] << 16, low[0] | low[1] << 16);
    }
    const float back = ldexpf(1, exponent - 15);
    memcpy(&table->x, &back, sizeof back);
}

cudaError_t gck_tensor_direct(const gck_matrix *matrix, int output, int together, const uint2 *table, int count,
                              int64_t frames, cudaStream_t stream) {
    const int steps = (count - 1 + 15) / 16 + 1;
    switch (steps) {
    case 4:
        return launch<4, 4>(matrix, output, together, table, steps, frames, stream);
    case 5:
        return launch<4, 5>(matrix, output, together, table, steps, frames, stream);
    case 6:
        return launch<8, 6>(matrix, output, together, table, steps, frames, stream);
    case 7:
        return launch<8, 7>(matrix, output, together, table, steps, frames, stream);
    case 8:
        return launch<8, 8>(matrix, output, together, table, steps, frames, stream);
    case 9:
        return launch<8, 9>(matrix, output, together, table, steps, frames, stream);
    default:
        return launch<8, 0>(matrix, output, together, table, steps, frames, stream);
    }
}
