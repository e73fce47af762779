/*
 * Direct convolution in registers, after the course's case study: a thread computes OUTPUTS neighbouring outputs; the
 * input window slides through registers whose indices are all compile-time constants.
 *
 *      y[i0 + r] = sum over m of h'[m] x[i0 + r + m],     h' the taps reversed
 *
 *      window   | w0 w1 w2 ...                  w(W-1) |   W = OUTPUTS + 4, a ring: four taps pass, four inputs enter,
 *                                                          after W taps every register has held every place
 *
 * The input tile and the taps lie in shared memory. Four taps are one 128-bit broadcast, four inputs one 128-bit load;
 * threads stand OUTPUTS floats apart, and with OUTPUTS / 4 odd the eight threads of a load phase meet eight different
 * groups of banks. Four taps thus cost two loads for 4 x OUTPUTS multiply-adds.
 *
 * Up to SEGMENT taps are summed in floats (good to 125 dB). Longer responses, and outputs with several routes, are cut
 * into segments whose sums are kept in doubles, so that the error does not grow with the length.
 */
#include "engine.h"

#include <cuda_pipeline.h>

namespace {

enum { BLOCK = 128, SEGMENT = 512 };

/* Taps 1 to `padded` reversed into shared memory, zeros in front. Tap 0 is not among them: it meets the window where it
 * stands in the end, so that the tile may begin a multiple of four floats before the outputs. */
__device__ __forceinline__ void load_taps(float *reversed, const float *taps, int count, int padded) {
    for (int m = threadIdx.x; m < padded; m += BLOCK) {
        int k = padded - m;
        reversed[m] = k < count ? taps[k] : 0.0f;
    }
}

/* tile[i] = x[i], sixteen bytes at a time, past no end of the signal: `most` is where it ends. */
__device__ __forceinline__ void load_tile(float *tile, const float *x, int count, int64_t most) {
    int end = (int)min((int64_t)count, (most + 3) & ~(int64_t)3);
    for (int i = 4 * threadIdx.x; i < end; i += 4 * BLOCK)
        __pipeline_memcpy_async(tile + i, x + i, 4 * sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

/* acc[r] = first tile[padded + r] + sum over m < padded of taps[m] tile[r + m] */
template <int OUTPUTS>
__device__ __forceinline__ void slide(float *acc, const float *tile, const float *taps, int padded, float first) {
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
            float4 h = *(const float4 *)(taps + m + q);
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
        acc[r] = fmaf(first, w[r], acc[r]);
}

/* The tile's outputs through shared memory, so that a warp writes whole lines. */
template <int OUTPUTS> __device__ __forceinline__ void store(float *tile, const float *acc, float *out, int count) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < OUTPUTS; r += 4)
        *(float4 *)(tile + OUTPUTS * threadIdx.x + r) = make_float4(acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
    __syncthreads();
    for (int i = 4 * threadIdx.x; i < count; i += 4 * BLOCK)
        *(float4 *)(out + i) = *(const float4 *)(tile + i);
}

/* Taps after the first, up to a multiple of the window. */
template <int OUTPUTS> __host__ __device__ __forceinline__ int padded_taps(int count) {
    return (count - 1 + OUTPUTS + 3) / (OUTPUTS + 4) * (OUTPUTS + 4);
}

template <int OUTPUTS, int RESIDENT>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    short_response(gck_matrix a, const float *__restrict__ taps, int count, int64_t frames) {
    const int TILE = OUTPUTS * BLOCK;
    __shared__ __align__(16) float tile[TILE + SEGMENT];
    __shared__ __align__(16) float reversed[SEGMENT];
    int64_t n0 = (int64_t)blockIdx.x * TILE;
    int padded = padded_taps<OUTPUTS>(count);
    gck_route route = a.route[blockIdx.y];
    const float *h = taps + (int64_t)route.plane * count;
    load_taps(reversed, h, count, padded);
    load_tile(tile, a.in + route.input * a.in_stride + n0 - padded, TILE + padded, frames - n0 + padded);
    float first = h[0];
    __syncthreads();
    float acc[OUTPUTS];
    slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, reversed, padded, first);
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, (int)min((int64_t)TILE, frames - n0));
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
            float first = h[0];
            __syncthreads();
            slide<OUTPUTS>(acc, tile + OUTPUTS * threadIdx.x, reversed, padded, first);
#pragma unroll
            for (int r = 0; r < OUTPUTS; r++)
                total[r * BLOCK + threadIdx.x] += (double)acc[r];
        }
    }
#pragma unroll
    for (int r = 0; r < OUTPUTS; r++)
        acc[r] = (float)total[r * BLOCK + threadIdx.x];
    store<OUTPUTS>(tile, acc, a.out + blockIdx.y * a.out_stride + n0, (int)min((int64_t)TILE, frames - n0));
}

template <int OUTPUTS> dim3 grid_of(const gck_matrix *matrix, int64_t frames) {
    return dim3((unsigned)((frames + OUTPUTS * BLOCK - 1) / (OUTPUTS * BLOCK)), matrix->outputs);
}

} // namespace

cudaError_t gck_direct(const gck_matrix *matrix, const float *taps, int64_t taps_count, int64_t frames,
                       cudaStream_t stream) {
    if (!matrix->single || taps_count > SEGMENT)
        long_response<<<grid_of<28>(matrix, frames), BLOCK, 0, stream>>>(*matrix, taps, taps_count, frames);
    else if (taps_count > 48)
        short_response<28, 6>
            <<<grid_of<28>(matrix, frames), BLOCK, 0, stream>>>(*matrix, taps, (int)taps_count, frames);
    else /* memory decides: fewer outputs a thread, more blocks at a time */
        short_response<12, 10>
            <<<grid_of<12>(matrix, frames), BLOCK, 0, stream>>>(*matrix, taps, (int)taps_count, frames);
    return cudaGetLastError();
}
