/*
 * Direct convolution with one response of up to GCK_DIRECT_TENSOR_TAPS_MAX taps on tensor cores, in float precision.
 *
 * A float is represented by two halves: the nearest half, and the remainder rounded to a half, 22 bits together. Of the
 * four products of two such pairs three are summed, in floats; the fourth is below the rounding error of the result. To
 * stay within the range of halves, the samples of a tile are scaled by a power of two that brings the largest magnitude
 * to 2^14 or more, below 2^15; the taps likewise.
 *
 *      y[n + 16 (TILES j + i) + p] = sum over k of H[p][k] X[k][j],    H[p][k] = h[p + L - k]
 *                                                                      X[k][j] = x[n + 16 (TILES j + i) + k - L]
 *
 * for phases p < 16, columns j < 8 and tiles i < TILES, k < L + 16: products of 16 x 16 and 16 x 8. L (`history`) is
 * the number of taps after the first, rounded up to a multiple of 16. H is the same for all tiles and constant along
 * its diagonals, so that a step of 16 in k needs two new registers of it; X of tile i + 1 is X of tile i one step
 * later, so that a step needs two new registers of X for all tiles. The sums of a tile stay in the accumulators of the
 * tensor cores, which truncate instead of rounding, for only FLUSH steps.
 *
 * Memory: a warp works alone. It owns two tiles of shared memory and copies the next one asynchronously while it
 * computes. The table of the taps is in registers if the number of steps is a compile-time constant, else in shared
 * memory.
 *
 * Used only where tensor cores sum halves in floats at many times the rate of the multiply-add units, that is, in
 * data-centre devices (compute capability 8.0, 9.0, 10.x); elsewhere the kernels of direct.cu are as fast. The contract
 * of the launcher is that of gck_direct in kernels.h.
 */
#include "direct.cuh"
#include "kernels/engine/launch.cuh"

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

enum { WARPS = 4, FLUSH = 4 };

/* Resident blocks per multiprocessor to compile for if the number of steps is not a compile-time constant. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { MANY_STEPS = 2 };
#else
enum { MANY_STEPS = 3 };
#endif

/* Sizes of a warp's work. TILES: tiles per column; STEPS: the number of steps in k, or 0 if it is known only at run
 * time. Few steps need fewer registers, which allows more resident blocks. */
template <int TILES, int STEPS> struct shape {
    static const int column = 16 * TILES, unit = 8 * column;
    enum { steps = STEPS };
    static const int resident = STEPS == 0 ? MANY_STEPS : TILES == 4 ? 4 : 2;

    /* Returns where sample i of the tile is stored. Eight floats between columns make the reads of eight columns free
     * of bank conflicts. */
    static constexpr __host__ __device__ int padded_index(int i) {
        return i / column * (column + 8) + i % column;
    }

    /* Returns the floats of a warp's tile, including those that the last step reads ahead. */
    static constexpr __host__ __device__ int tile_floats(int history) {
        return (padded_index(unit + history + 16) + 3) / 4 * 4;
    }
};

/* Entry k + PAD_FRONT of a response's table contains taps k and k - 1: their nearest halves in x, their remainders in
 * y. There are zeros in front of tap 0, as far as the last step reads ahead, and after the last tap. Entry 0 is not
 * read as taps: its x is the float that undoes the scaling of the taps. */
enum { PAD_FRONT = 32, PAD_BACK = 16 };

#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200

/* Adds the product of a 16 x 16 matrix with constant diagonals (three registers) and a 16 x 8 matrix to `sum`. */
__device__ __forceinline__ void multiply_add(float *sum, const unsigned *h, const unsigned *x) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %4}, {%7, %8}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(h[1]), "r"(h[0]), "r"(h[2]), "r"(x[0]), "r"(x[1]));
}

/* Splits two floats into their nearest halves (*high) and the remainders as halves (*low). */
__device__ __forceinline__ void split_halves(float2 x, unsigned *high, unsigned *low) {
    __half2 nearest = __float22half2_rn(x);
    float2 rounded = __half22float2(nearest);
    __half2 remainder = __float22half2_rn(make_float2(x.x - rounded.x, x.y - rounded.y));
    *high = *(unsigned *)&nearest;
    *low = *(unsigned *)&remainder;
}

/* Returns the power of two that scales the largest magnitude, whose bits are `peak`, to 2^14 or more, below 2^15. */
__device__ __forceinline__ float scale_for(unsigned peak) {
    return __uint_as_float((268 - max(peak >> 23, 32u)) << 23);
}

/* Returns the inverse of scale_for(peak). */
__device__ __forceinline__ float unscale_for(unsigned peak) {
    return __uint_as_float((max(peak >> 23, 32u) - 14) << 23);
}

/* Returns the largest magnitude of `peak` and the numbers of x. */
__device__ __forceinline__ float max_magnitude(float peak, float4 x) {
    return fmaxf(fmaxf(peak, fmaxf(fabsf(x.x), fabsf(x.y))), fmaxf(fabsf(x.z), fabsf(x.w)));
}

/* Starts copying x[i] to tile[padded_index(i)] for i < count, and stores zeros from the end of the signal, x[length],
 * on: zero taps are multiplied by them, and stale memory may contain NaN. */
template <typename Shape>
__device__ __forceinline__ void fetch(float *tile, const float *x, int count, int64_t length) {
    const int lane = 4 * (threadIdx.x % 32), end = (int)min((int64_t)count, length);
#pragma unroll(Shape::steps ? 16 : 1)
    for (int i = 0; i < count; i += 128) {
        float *to = tile + Shape::padded_index(i + lane);
        if (i + lane < end)
            __pipeline_memcpy_async(to, x + i + lane, 4 * sizeof(float));
        else if (i + lane < count)
            *(float4 *)to = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}

/* Sets all accumulators of a warp to zero. */
template <int TILES> __device__ __forceinline__ void clear(float (&sum)[TILES][4]) {
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            sum[i][r] = 0.0f;
}

/* Adds the three products of one step: large and small ones are summed apart. */
template <int TILES>
__device__ __forceinline__ void multiply_step(float (&large)[TILES][4], float (&small)[TILES][4],
                                              const unsigned (&h_high)[3], const unsigned (&h_low)[3],
                                              const unsigned (&high)[2 * TILES], const unsigned (&low)[2 * TILES]) {
#pragma unroll
    for (int i = 0; i < TILES; i++)
        multiply_add(large[i], h_high, high + 2 * i);
#pragma unroll
    for (int i = 0; i < TILES; i++)
        multiply_add(small[i], h_low, high + 2 * i);
#pragma unroll
    for (int i = 0; i < TILES; i++)
        multiply_add(small[i], h_high, low + 2 * i);
}

/* Stores the outputs of a tile at `out`, `count` of them, unscaled: phases g and g + 8 of columns 2 t and 2 t + 1.
 * Eight lanes write a sector. */
template <typename Shape, int TILES>
__device__ __forceinline__ void store_tile(const float (&sum)[TILES][4], float *out, int64_t count, float unscale,
                                           int g, int t) {
    const int at = 2 * t * Shape::column + g, left = (int)min(count, (int64_t)Shape::unit) - at;
    float *y = out + at;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int offset = 16 * i + r % 2 * Shape::column + r / 2 * 8;
            if (offset < left)
                y[offset] = sum[i][r] * unscale;
        }
}

#endif

/* block.y counts outputs from `output` on, which share the response. run_time_steps: the steps if STEPS is 0. The loops
 * over steps stay in the kernel: moved to a function, they compile to other machine code for STEPS = 0. */
template <int TILES, int STEPS>
__global__ void __launch_bounds__(32 * WARPS, shape<TILES, STEPS>::resident)
    direct_tensor(gck_matrix a, int output, const uint2 *__restrict__ table, int run_time_steps, int64_t frames) {
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200
    typedef shape<TILES, STEPS> form;
    extern __shared__ __align__(16) float shared[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int steps = STEPS ? STEPS : run_time_steps, history = 16 * (steps - 1);
    const int tile_floats = form::tile_floats(history), length = form::unit + history;
    float *tiles = shared + 2 * warp * tile_floats;
    uint2 *pairs = (uint2 *)(shared + 2 * WARPS * tile_floats);
    const int64_t step = (int64_t)gridDim.x * WARPS * form::unit;
    output += blockIdx.y;
    const gck_route route = single_route(a, output);
    const float *in = a.in + route.input * a.in_stride - history;
    table += (int64_t)route.plane * (PAD_FRONT + history + PAD_BACK);
    float *out = a.out + output * a.out_stride;
    int64_t n = ((int64_t)blockIdx.x * WARPS + warp) * form::unit;
    int buffer = 0;
    pdl_trigger();
    pdl_wait();
    if (n < frames)
        fetch<form>(tiles, in + n, length, frames - n + history);
    __pipeline_commit();
    const float unscale_taps = __uint_as_float(__ldg(&table->x));
    uint2 registers[STEPS ? 2 * STEPS + 1 : 1];
    if (STEPS) {
#pragma unroll
        for (int s = 0; s <= 2 * STEPS; s++)
            registers[s] = __ldg(table + PAD_FRONT + history + 8 + g - 2 * t - 8 * s);
    } else {
        for (int i = threadIdx.x; i < PAD_FRONT + history + PAD_BACK; i += 32 * WARPS)
            pairs[i] = __ldg(table + i);
        __syncthreads();
        pairs += PAD_FRONT + history + 8 + g - 2 * t;
    }
    auto pair = [&](int s) { return STEPS ? registers[min(s, 2 * STEPS)] : pairs[-8 * s]; };

#pragma unroll 1
    for (; n < frames; n += step) {
        const float *tile = tiles + buffer * tile_floats;
        buffer ^= 1;
        __pipeline_wait_prior(0);
        __syncwarp();
        if (n + step < frames)
            fetch<form>(tiles + buffer * tile_floats, in + n + step, length, frames - n - step + history);
        __pipeline_commit();
        float peak = 0.0f;
#pragma unroll(STEPS ? 16 : 2)
        for (int i = 4 * lane; i < length; i += 128)
            peak = max_magnitude(peak, *(const float4 *)(tile + form::padded_index(i)));
        const unsigned bits = __reduce_max_sync(0xffffffffu, __float_as_uint(peak));
        const float scale = scale_for(bits), unscale = unscale_for(bits) * unscale_taps;

        tile += (form::column + 8) * g + 2 * t;
        unsigned high[2 * TILES], low[2 * TILES], h_high[3], h_low[3];
        float sum[TILES][4];
        auto samples = [&](int s) { return *(const float2 *)(tile + form::padded_index(8 * s)); };
        auto split = [&](int slot, float2 x) {
            split_halves(make_float2(x.x * scale, x.y * scale), high + slot, low + slot);
        };
#pragma unroll
        for (int s = 0; s < 2 * TILES; s++)
            split(s, samples(s));
#pragma unroll
        for (int s = 0; s < 3; s++) {
            h_high[s] = pair(s).x;
            h_low[s] = pair(s).y;
        }
        clear(sum);
#pragma unroll(STEPS ? STEPS : 1)
        for (int first = 0; first < steps; first += FLUSH) {
            float large[TILES][4], small[TILES][4];
            clear(large);
            clear(small);
#pragma unroll(STEPS ? FLUSH : 1)
            for (int q = first; q < min(first + FLUSH, steps); q++) {
                /* Operands of the next step, read while the products of this one are summed. */
                const float2 x0 = samples(2 * q + 2 * TILES), x1 = samples(2 * q + 2 * TILES + 1);
                const uint2 h1 = pair(2 * q + 3), h2 = pair(2 * q + 4);
                multiply_step(large, small, h_high, h_low, high, low);
#pragma unroll
                for (int s = 0; s < 2 * TILES - 2; s++) {
                    high[s] = high[s + 2];
                    low[s] = low[s + 2];
                }
                split(2 * TILES - 2, x0);
                split(2 * TILES - 1, x1);
                h_high[0] = h_high[2], h_high[1] = h1.x, h_high[2] = h2.x;
                h_low[0] = h_low[2], h_low[1] = h1.y, h_low[2] = h2.y;
            }
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    sum[i][r] += large[i][r] + small[i][r];
        }
        store_tile<form>(sum, out + n, frames - n, unscale, g, t);
        __syncwarp(); /* all lanes have read the tile */
    }
#endif
}

template <int TILES, int STEPS>
cudaError_t launch(const gck_matrix *matrix, output_range outputs, const uint2 *table, int steps, int64_t frames,
                   cudaStream_t stream) {
    typedef shape<TILES, STEPS> form;
    const int history = 16 * (steps - 1);
    const int bytes = 2 * WARPS * form::tile_floats(history) * (int)sizeof(float) +
                      (PAD_FRONT + history + PAD_BACK) * (int)sizeof(uint2);
    const int64_t units = (frames + form::unit - 1) / form::unit;
    unsigned blocks = 0;
    cudaError_t err = allow_shared(direct_tensor<TILES, STEPS>, bytes);
    if (!err)
        err = persistent_grid(direct_tensor<TILES, STEPS>, 32 * WARPS, bytes, (units + WARPS - 1) / WARPS, &blocks);
    if (err)
        return err;
    return launch_dependent(direct_tensor<TILES, STEPS>, dim3(blocks, (unsigned)outputs.count), 32 * WARPS, bytes,
                            stream, *matrix, outputs.first, table, steps, frames);
}

/* The kernels by their number of steps; 0: any number. */
const struct row {
    int steps;
    cudaError_t (*launch)(const gck_matrix *matrix, output_range outputs, const uint2 *table, int steps, int64_t frames,
                          cudaStream_t stream);
} rows[] = {{4, launch<4, 4>}, {5, launch<4, 5>}, {6, launch<8, 6>}, {7, launch<8, 7>},
            {8, launch<8, 8>}, {9, launch<8, 9>}, {0, launch<8, 0>}};

} // namespace

int64_t gck_direct_tensor_table_size(int64_t count) {
    return count >= GCK_DIRECT_TENSOR_TAPS_MIN && count <= GCK_DIRECT_TENSOR_TAPS_MAX
               ? PAD_FRONT + (count - 1 + 15) / 16 * 16 + PAD_BACK
               : 0;
}

void gck_direct_tensor_table(const float *taps, int64_t count, uint2 *table) {
    const int64_t size = gck_direct_tensor_table_size(count);
    float peak = 0;
    int exponent;
    for (int64_t k = 0; k < count; k++)
        peak = fmaxf(peak, fabsf(taps[k]));
    frexpf(peak, &exponent);
    exponent = std::max(exponent, -100);
    for (int64_t i = 0; i < size; i++) {
        unsigned high[2], low[2];
        for (int64_t p = 0; p < 2; p++) {
            const int64_t k = i - PAD_FRONT - p;
            const float h = k >= 0 && k < count ? ldexpf(taps[k], 15 - exponent) : 0;
            const __half_raw nearest = __float2half_rn(h), remainder = __float2half_rn(h - __half2float(nearest));
            high[p] = nearest.x;
            low[p] = remainder.x;
        }
        table[i] = make_uint2(high[0] | high[1] << 16, low[0] | low[1] << 16);
    }
    const float unscale = ldexpf(1, exponent - 15);
    memcpy(&table->x, &unscale, sizeof unscale);
}

cudaError_t gck_direct_tensor_is_compiled(bool *compiled) {
    int architecture = 0;
    cudaError_t err = compiled_architecture((const void *)direct_tensor<8, 0>, &architecture);
    *compiled = architecture >= 80 && architecture < 120;
    return err;
}

cudaError_t gck_direct_tensor(const gck_matrix *matrix, output_range outputs, const uint2 *table, int taps_count,
                              int64_t frames, cudaStream_t stream) {
    const int steps = (taps_count - 1 + 15) / 16 + 1;
    for (const row &r : rows)
        if (steps == r.steps || r.steps == 0)
            return r.launch(matrix, outputs, table, steps, frames, stream);
    return cudaErrorInvalidValue;
}
