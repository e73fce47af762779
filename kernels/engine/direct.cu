/*
 * Direct convolution in registers, after the course's case study: a thread computes OUTPUTS neighbouring outputs; the
 * input window slides through registers whose indices are all compile-time constants.
 *
 *      y[i0 + r] = sum over m of h'[m] x[i0 + r + m],     h' the taps reversed
 *
 *      window   | w0 w1 w2 ...                  w(W-1) |   W = OUTPUTS + 4, a ring: four taps pass, four inputs enter,
 *                                                          after W taps every register has held every place
 *
 * The input tile lies in shared memory, four inputs being one 128-bit load; threads stand OUTPUTS floats apart, and
 * with OUTPUTS / 4 odd the eight threads of a load phase meet eight different groups of banks. Taps are kernel
 * parameters, that is, constant memory, which costs shared memory nothing (5 % of the time); one launch then serves one
 * response: its blocks stay, and fetch the next tile while they compute. Many channels with a response each read theirs
 * from shared memory, four in a 128-bit broadcast. Few taps of one response have a kernel of their own, few_taps.cu,
 * and so has one response where there are tensor cores to match, tensor_direct.cu.
 *
 * Up to SEGMENT taps are summed in floats (good to 125 dB). Longer responses, and outputs with several routes, are cut
 * into segments whose sums are kept in doubles, so that the error does not grow with the length.
 */
#include "direct.cuh"

#include <cuda_pipeline.h>

namespace {

enum { BLOCK = 128, SMALL = 64, SEGMENT = 512 };

/* Taps 1 to `padded` reversed into shared memory, zeros in front. Tap 0 is not among them: it meets the window where it
 * stands in the end, so that the tile may begin a multiple of four floats before the outputs. */
__device__ __forceinline__ void load_taps(float *reversed, const float *taps, int count, int padded) {
    for (int m = threadIdx.x; m < padded; m += BLOCK) {
        int k = padded - m;
        reversed[m] = k < count ? taps[k] : 0.0f;
    }
}

/* tile[i] = x[i], sixteen bytes at a time, past no end of the signal: `most` is where it ends. */
template <int THREADS>
__device__ __forceinline__ void fetch_tile(float *tile, const float *x, int count, int64_t most) {
    int end = (int)min((int64_t)count, (most + 3) & ~(int64_t)3);
    for (int i = 4 * threadIdx.x; i < end; i += 4 * THREADS)
        __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    __pipeline_commit();
}

__device__ __forceinline__ void load_tile(float *tile, const float *x, int count, int64_t most) {
    fetch_tile<BLOCK>(tile, x, count, most);
    __pipeline_wait_prior(0);
}

struct alignas(16) constant_taps {
    float reversed[SEGMENT];
    float first;

    __device__ __forceinline__ float4 four(int m) const {
        return *(const float4 *)(reversed + m);
    }
};

struct shared_taps {
    const float *reversed;
    float first;

    __device__ __forceinline__ float4 four(int m) const {
        return *(const float4 *)(reversed + m);
    }
};

/* acc[r] = first tile[padded + r] + sum over m < padded of reversed[m] tile[r + m] */
template <int OUTPUTS, typename Taps>
__device__ __forceinline__ void slide(float *acc, const float *tile, const Taps &taps, int padded) {
    const int WINDOW = OUTPUTS + 4;
    float w[WINDOW];
#pragma unroll
    for (int i = 0; i < OUTPUTS; i += 4) {
        float4 x = *(const float4 *)(tile + i);
        w[i] = x.x, w[i + 1] = x.y, w[i + 2] = x.z, w[i + 3] = x.w;
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = 0.0f;
#pragma unroll 1
    for (int m = 0; m < padded; m += WINDOW) {
#pragma unroll
        for (int q = 0; q < WINDOW; q += 4) {
            float4 x = *(const float4 *)(tile + m + q + OUTPUTS);
            float4 h = taps.four(m + q);
            const int at = (OUTPUTS + q) % WINDOW;
            w[at] = x.x, w[at + 1] = x.y, w[at + 2] = x.z, w[at + 3] = x.w;
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.x, w[(q + r) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.y, w[(q + r + 1) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.z, w[(q + r + 2) % WINDOW], acc[r]);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                acc[r] = fmaf(h.w, w[(q + r + 3) % WINDOW], acc[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = fmaf(taps.first, w[r], acc[r]);
}

/* The tile's outputs; the block has `most` of them to write. */
template <int OUTPUTS> __device__ __forceinline__ void store(float *tile, const float *acc, float *out, int64_t most) {
    int share = threadIdx.x / 32 * 32 * OUTPUTS;
    __syncthreads(); /* the tile has been read */
    store_warp<OUTPUTS>(tile + share, acc, out + share, most - share);
}

/* Taps after the first, up to a multiple of the window. */
template <int OUTPUTS> __host__ __device__ __forceinline__ int padded_taps(int count) {
    return (count - 1 + OUTPUTS + 3) / (OUTPUTS + 4) * (OUTPUTS + 4);
}

/* Blocks a multiprocessor is to hold: Turing's holds 1024 threads at most. */
constexpr int resident(int outputs) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return outputs == 28 ? 6 : 8;
#else
    return outputs == 28 ? 6 : 10;
#endif
}

/* Many responses: block.y is the output, its taps come from memory. */
template <int OUTPUTS>
__global__ void __launch_bounds__(BLOCK, resident(OUTPUTS))
    short_responses(gck_matrix a, const float *__restrict__ taps, int count, int64_t frames) {
    const int TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ __align__(16) float reversed[SEGMENT];
    int64_t n0 = (int64_t)blockIdx.x * TILE;
    int padded = padded_taps<OUTPUTS>(count);
    gck_route route = only_route(a, blockIdx.y);
    const float *h = taps + (int64_t)route.plane * count;
    load_taps(reversed, h, count, padded);
    load_tile(tile, a.in + route.input * a.in_stride + n0 - padded, TILE + padded, frames - n0 + padded);
    shared_taps t = {reversed, h[0]};
    __syncthreads();
    float acc[OUTPUTS];
    slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, t, padded);
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

/* Blocks of one_response that a multiprocessor is to hold. */
enum { RESIDENT = 12 };

/* One response: block.y counts outputs from `output` on, which all go through it. The next tile comes in while this one
 * is worked on, and this one's outputs leave through it. */
__global__ void __launch_bounds__(SMALL, RESIDENT)
    one_response(gck_matrix a, int output, const __grid_constant__ constant_taps taps, int padded, int64_t frames) {
    const int OUTPUTS = 28, TILE = OUTPUTS * SMALL;
    __shared__ __align__(16) float tiles[2][TILE + SEGMENT];
    const int64_t step = (int64_t)gridDim.x * TILE;
    output += blockIdx.y;
    const float *in = a.in + only_route(a, output).input * a.in_stride - padded;
    float *out = a.out + output * a.out_stride;
    int64_t n = (int64_t)blockIdx.x * TILE;
    int side = 0;
    fetch_tile<SMALL>(tiles[0], in + n, TILE + padded, frames - n + padded);
#pragma unroll 1
    for (; n < frames; n += step) {
        float acc[OUTPUTS];
        float *tile = tiles[side];
        side = 1 - side;
        __pipeline_wait_prior(0);
        __syncthreads(); /* and the other tile's outputs have left */
        if (n + step < frames)
            fetch_tile<SMALL>(tiles[side], in + n + step, TILE + padded, frames - n - step + padded);
        slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, taps, padded);
        store<OUTPUTS>(tile, acc, out + n, frames - n);
    }
}

__global__ void __launch_bounds__(BLOCK, 4)
    long_response(gck_matrix a, const float *__restrict__ taps, int64_t count, int64_t frames) {
    const int OUTPUTS = 28, TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ __align__(16) float reversed[SEGMENT];
    __shared__ double total[TILE]; /* [r][thread]: each thread its own, no conflicts */
    int64_t n0 = (int64_t)blockIdx.x * TILE;
    float acc[OUTPUTS];
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        total[r * BLOCK + threadIdx.x] = 0.0;
    for (int e = a.row[blockIdx.y]; e < a.row[blockIdx.y + 1]; e++) {
        gck_route route = a.route[e];
        for (int64_t k = 0; k < count; k += SEGMENT) {
            const float *h = taps + route.plane * count + k;
            int here = (int)min((int64_t)SEGMENT, count - k), padded = padded_taps<OUTPUTS>(here);
            __syncthreads(); /* the last segment may still be read */
            load_taps(reversed, h, here, padded);
            load_tile(tile, a.in + route.input * a.in_stride + n0 - k - padded, TILE + padded,
                      frames - n0 + k + padded);
            shared_taps t = {reversed, h[0]};
            __syncthreads();
            slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, t, padded);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                total[r * BLOCK + threadIdx.x] += (double)acc[r];
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = (float)total[r * BLOCK + threadIdx.x];
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, frames - n0);
}

cudaError_t launch_one(const gck_matrix *matrix, int output, int together, const uint2 *table, const float *h,
                       int count, int64_t frames, cudaStream_t stream) {
    if (table && count > GCK_TENSOR_LEAST)
        return gck_tensor_direct(matrix, output, together, table, count, frames, stream);
    if (count <= GCK_FEW_TAPS)
        return gck_few_taps(matrix, output, together, h, count, frames, stream);
    const int OUTPUTS = 28, TILE = OUTPUTS * SMALL;
    int padded = padded_taps<OUTPUTS>(count);
    constant_taps t;
    t.first = h[0];
    for (int m = 0; m < SEGMENT; m++)
        t.reversed[m] = m < padded && padded - m < count ? h[padded - m] : 0.0f;
    unsigned blocks;
    cudaError_t failed = persistent_blocks(RESIDENT, (frames + TILE - 1) / TILE, &blocks);
    if (failed)
        return failed;
    one_response<<<dim3(blocks, (unsigned)together), SMALL, 0, stream>>>(*matrix, output, t, padded, frames);
    return cudaGetLastError();
}

template <int OUTPUTS>
cudaError_t launch_many(const gck_matrix *matrix, const float *taps, int count, int64_t frames, cudaStream_t stream) {
    unsigned tiles = (unsigned)((frames + OUTPUTS * BLOCK - 1) / (OUTPUTS * BLOCK));
    short_responses<OUTPUTS>
        <<<dim3(tiles, (unsigned)matrix->outputs), BLOCK, 0, stream>>>(*matrix, taps, count, frames);
    return cudaGetLastError();
}

cudaError_t launch_short(const gck_matrix *matrix, const float *taps, const float *host_taps, const uint2 *table,
                         int count, int64_t frames, cudaStream_t stream) {
    enum { LAUNCHES_MOST = 4, FEW = 48 };
    bool shared = true; /* one response for all outputs */
    for (int o = 1; o < matrix->outputs; o++)
        shared = shared && matrix->host_route[o].plane == matrix->host_route[0].plane;
    int together = shared ? matrix->outputs : 1;
    if (matrix->outputs / together > LAUNCHES_MOST) /* with few taps memory decides: more blocks at a time */
        return count > FEW ? launch_many<28>(matrix, taps, count, frames, stream)
                           : launch_many<12>(matrix, taps, count, frames, stream);
    cudaError_t failed = cudaSuccess;
    for (int o = 0; o < matrix->outputs && !failed; o += together)
        failed = launch_one(matrix, o, together, table, host_taps + (int64_t)matrix->host_route[o].plane * count, count,
                            frames, stream);
    return failed;
}

} // namespace

cudaError_t gck_direct(const gck_matrix *matrix, const float *taps, const float *host_taps, const uint2 *table,
                       int64_t taps_count, int64_t frames, cudaStream_t stream) {
    if (matrix->single && taps_count <= SEGMENT)
        return launch_short(matrix, taps, host_taps, table, (int)taps_count, frames, stream);
    dim3 grid((unsigned)((frames + 28 * BLOCK - 1) / (28 * BLOCK)), matrix->outputs);
    long_response<<<grid, BLOCK, 0, stream>>>(*matrix, taps, taps_count, frames);
    return cudaGetLastError();
}
