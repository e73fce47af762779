/*
 * Batches of short signals: the method of batch.cu with transforms of N = 4096 complex points, 8192 real ones. A block
 * of 256 threads holds 16 points in each (fft_grouped.cuh), so that four blocks share a multiprocessor and one computes
 * while another waits for its samples. The transform of the response is the first turn of the loop over the segments: a
 * second copy of the transform would double the instructions that a block fetches.
 *
 * Memory: samples are read once and written once; the spectrum of the response stays in the second-level cache.
 */
#include "batch_samples.cuh"
#include "batch_short.cuh"
#include "twiddles.h"

#include "kernels/device/fft_grouped.cuh"

namespace {

typedef grouped_fft<4, 4> f;

static_assert(f::N == GCK_BATCH_SHORT_POINTS && f::twiddles == GCK_BATCH_SHORT_TWIDDLES, "see batch_short.cuh");

enum { RESIDENT = 4, BYTES = f::shared * (int)sizeof(float2) };

/* Scales a response for the inverse, and adds `dry` to its first tap. */
__device__ __forceinline__ void mix(float2 *v, float wet, float dry, int t) {
    const float scale = wet / f::N;
#pragma unroll
    for (int j = 0; j < f::P; j++)
        v[j] = make_float2(v[j].x * scale, v[j].y * scale);
    if (t == 0)
        v[0].x += dry / f::N;
}

/* Stores a spectrum. */
__device__ __forceinline__ void keep(const float2 *v, float2 *h) {
#pragma unroll
    for (int j = 0; j < f::P; j += 2)
        *(float4 *)(h + j * f::T) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

/* Persistent blocks; each claims items until none is left. spectra: N complex numbers per block. Floats: the samples of
 * all items are adjacent floats. */
template <bool Floats>
__global__ void __launch_bounds__(f::T, Floats ? RESIDENT : RESIDENT / 2)
    batch_short(const gck_batch_item *__restrict__ items, int count, const float2 *__restrict__ twiddles,
                float2 *spectra, int *next_item) {
    extern __shared__ __align__(16) float2 shared[];
    __shared__ int claimed;
    const int t = threadIdx.x;
    float2 *h = spectra + (int64_t)blockIdx.x * f::N + 2 * t, v[f::P];
    for (;;) {
        if (t == 0)
            claimed = atomicAdd(next_item, 1);
        __syncthreads();
        const int at = claimed;
        if (at >= count)
            return;
        const gck_batch_item &item = items[at];
        const int overlap = ((int)item.taps_count + 2) / 4 * 4, hop = 2 * f::N - overlap;
#pragma unroll 1
        for (int64_t n = item.first - hop; n < item.end; n += hop) {
            const bool response = n < item.first;
            if (Floats) {
                const float *x = response ? item.taps : (const float *)item.in.at;
                load_floats<f::P, f::T>(v, x, response ? 0 : n - overlap, response ? item.taps_count : item.frames, t);
            } else if (response) {
                load_floats<f::P, f::T>(v, item.taps, 0, item.taps_count, t);
            } else {
                load_channel<f::P, f::T, false>(v, item.in, n - overlap, item.frames, t);
            }
            if (response)
                mix(v, item.wet, item.dry, t);
            __syncthreads();
            f::forward(v, shared, t, twiddles);
            if (response) {
                keep(v, h);
                continue;
            }
#pragma unroll
            for (int j = 0; j < f::P; j += 2) {
                const float4 w = *(const float4 *)(h + j * f::T);
                v[j] = mul(v[j], make_float2(w.x, w.y));
                v[j + 1] = mul(v[j + 1], make_float2(w.z, w.w));
            }
            f::inverse(v, shared, t, twiddles);
            untwist<f::P>(v, untwist_angle<f::N>(t));
            store_channel<f::P, f::T, Floats>(v, item, n, overlap, (int)min((int64_t)2 * f::N, item.end - n + overlap),
                                              false, t);
        }
        __syncthreads();
    }
}

template <bool Floats>
cudaError_t launch(const gck_batch_item *items, int count, const gck_batch_memory *memory, int *next_item,
                   cudaStream_t stream) {
    unsigned blocks = 0;
    cudaError_t err = persistent_grid(RESIDENT, count, &blocks);
    if (err)
        return err;
    batch_short<Floats><<<blocks, f::T, BYTES, stream>>>(items, count, memory->twiddles, memory->spectra, next_item);
    return cudaGetLastError();
}

} // namespace

void gck_batch_short_twiddles(float2 *twiddles) {
    write_forward_twiddles(twiddles + f::FORWARD_A, 4, 4, 0.25);
    write_forward_twiddles(twiddles + f::FORWARD_B, 8, 4, 0.25);
    write_inverse_twiddles(twiddles + f::INVERSE_A, 4, f::GROUP);
    write_inverse_twiddles(twiddles + f::INVERSE_B, 4, f::T);
}

cudaError_t gck_batch_short(const gck_batch_item *items, int count, bool floats, const gck_batch_memory *memory,
                            int *next_item, cudaStream_t stream) {
    return floats ? launch<true>(items, count, memory, next_item, stream)
                  : launch<false>(items, count, memory, next_item, stream);
}
