/*
 * Batches: many signals, each convolved with a response of its own, in one persistent kernel. Overlap-save with the
 * whole transform of a block on the chip; the response's spectrum is computed where it is used.
 *
 *      out[n] = dry in[n] + wet sum over k of taps[k] in[n - k]
 *
 * A segment of 2 N samples, N = 16384, is transformed as N complex points (right_angle.cuh, fft_fma.cuh):
 *
 *      5 levels    thread t holds indices t + 512 j             then one exchange between all threads
 *      5 levels    16 threads share a node of 512 points        then one exchange within those 16
 *      4 levels    a thread holds the nodes u and u + 16 of its 32 whole
 *
 * and back in the opposite order. A response is processed in parts of at most GCK_BATCH_PART_TAPS taps, whose results
 * are added up. Spectra stay in the order in which threads hold them, one for each block of the grid, in the
 * second-level cache.
 *
 * Short items have a smaller transform (batch_short.cu): gck_batch_class_of compares the transforms that an item takes.
 *
 * Memory: samples are read once and written once for each part of the response, 512 threads reading adjacent samples;
 * the last level needs no twiddles from memory. A block takes the next unclaimed item from a counter.
 *
 * The exchanges have two forms (batch_exchange.cuh), which give the same samples. `whole_exchange` needs 136 KB of
 * shared memory per block (compute capability 8.0, 8.7, 9.0, 10.x); `split_exchange` passes the real and the imaginary
 * parts one after the other and needs 64 KB, which every device since Turing has. gck_batch chooses by what the device
 * allows.
 *
 * The contracts of the launchers are in kernels.h: gck_batch_query returns the sizes of the memory that gck_batch uses.
 */
#include "batch_exchange.cuh"
#include "batch_samples.cuh"
#include "batch_short.cuh"
#include "twiddles.h"

namespace {

/* Offsets of the twiddle tables of the four table-driven steps, and their total size. */
enum {
    FORWARD_A = 0,
    FORWARD_B = FORWARD_A + 32 * 16,
    INVERSE_A = FORWARD_B + 1024 * 8,
    INVERSE_B = INVERSE_A + 16 * 16,
    TWIDDLES = INVERSE_B + 512 * 16
};

template <typename Exchange>
__device__ __forceinline__ void forward(float2 *v, float *s, int t, const float2 *__restrict__ twiddles) {
    const int node = t / GROUP, u = t % GROUP;
    forward_root<5, true>(v);
    Exchange::across(v, s, t);
    forward_node<5>(v, twiddles + FORWARD_A + node, 32);
    Exchange::within(v, s, t);
    forward_node<4>(v, twiddles + FORWARD_B + node * POINTS_PER_THREAD + u, 1024);
    forward_node<4>(v + GROUP, twiddles + FORWARD_B + node * POINTS_PER_THREAD + u + GROUP, 1024);
}

template <typename Exchange>
__device__ __forceinline__ void inverse(float2 *v, float *s, int t, const float2 *__restrict__ twiddles) {
    inverse_leaves<4>(v);
    inverse_leaves<4>(v + GROUP);
    Exchange::back_within(v, s, t);
    inverse_blocks<5>(v, twiddles + INVERSE_A + t % GROUP, GROUP);
    Exchange::back_across(v, s, t);
    inverse_blocks<5>(v, twiddles + INVERSE_B + t, THREADS);
}

/* Computes the scaled spectrum of `taps_count` taps from `taps` on, `dry` being added to the first of them. */
template <typename Exchange>
__device__ __forceinline__ void transform_response(float2 *v, float *s, const gck_batch_item &item, int64_t offset,
                                                   int taps_count, int t, const float2 *__restrict__ twiddles) {
    load_floats<POINTS_PER_THREAD, THREADS>(v, item.taps + offset, 0, taps_count, t);
    const float scale = item.wet / POINTS;
#pragma unroll
    for (int j = 0; j < POINTS_PER_THREAD; j++)
        v[j] = make_float2(v[j].x * scale, v[j].y * scale);
    if (t == 0 && offset == 0)
        v[0].x += item.dry / POINTS;
    __syncthreads();
    forward<Exchange>(v, s, t, twiddles);
}

/* Persistent blocks; each claims items until none is left. spectra: POINTS complex numbers per block. Floats: the
 * samples of all items are adjacent floats and no response has several parts. A kernel that can do no more is faster.
 */
template <typename Exchange, bool Floats>
__global__ void __launch_bounds__(THREADS, 1)
    batch(const gck_batch_item *__restrict__ items, int count, const float2 *__restrict__ twiddles, float2 *spectra,
          int *next_item) {
    extern __shared__ __align__(128) float shared[];
    int *claimed = (int *)shared; /* 64 KB are all that a block can have: no room for one more int */
    const int t = threadIdx.x;
    float2 *h = spectra + (int64_t)blockIdx.x * POINTS + 2 * t, v[POINTS_PER_THREAD];
    for (;;) {
        if (t == 0)
            *claimed = atomicAdd(next_item, 1);
        __syncthreads();
        const int at = *claimed;
        if (at >= count)
            return;
        const gck_batch_item item = items[at];
        /* The result of the part at tap `offset` is delayed by `offset` frames. */
        for (int64_t offset = 0; offset < (Floats ? 1 : item.taps_count); offset += GCK_BATCH_PART_TAPS) {
            const int part = (int)min(item.taps_count - offset, (int64_t)GCK_BATCH_PART_TAPS);
            transform_response<Exchange>(v, shared, item, offset, part, t, twiddles);
#pragma unroll
            for (int j = 0; j < POINTS_PER_THREAD; j += 2)
                *(float4 *)(h + j * THREADS) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
            const int overlap = (part + 2) / 4 * 4, hop = 2 * POINTS - overlap;
            for (int64_t n = item.first; n < item.end; n += hop) {
                load_channel<POINTS_PER_THREAD, THREADS, Floats>(v, item.in, n - overlap - offset, item.frames, t);
                __syncthreads();
                forward<Exchange>(v, shared, t, twiddles);
#pragma unroll
                for (int j = 0; j < POINTS_PER_THREAD; j += 2) {
                    float4 w = *(const float4 *)(h + j * THREADS);
                    v[j] = mul(v[j], make_float2(w.x, w.y));
                    v[j + 1] = mul(v[j + 1], make_float2(w.z, w.w));
                }
                inverse<Exchange>(v, shared, t, twiddles);
                untwist<POINTS_PER_THREAD>(v, untwist_angle<POINTS>(t));
                store_channel<POINTS_PER_THREAD, THREADS, Floats>(
                    v, item, n, overlap, (int)min((int64_t)2 * POINTS, item.end - n + overlap), offset > 0, t);
            }
        }
        __syncthreads();
    }
}

} // namespace

void gck_batch_twiddles(float2 *twiddles) {
    write_forward_twiddles(twiddles + FORWARD_A, 5, 5, 0.25);
    write_forward_twiddles(twiddles + FORWARD_B, 10, 4, 0.25);
    write_inverse_twiddles(twiddles + INVERSE_A, 5, GROUP);
    write_inverse_twiddles(twiddles + INVERSE_B, 5, THREADS);
    gck_batch_short_twiddles(twiddles + TWIDDLES);
}

cudaError_t gck_batch_query(int device, gck_batch_sizes *sizes) {
    gck_device d;
    cudaError_t err = gck_device_query(device, &d);
    if (!err && d.shared_bytes < split_exchange::BYTES)
        err = cudaErrorNotSupported;
    /* The blocks of batch_short.cu need no more scratch memory than these. */
    *sizes = {TWIDDLES + GCK_BATCH_SHORT_TWIDDLES, d.multiprocessors, (int64_t)d.multiprocessors * POINTS};
    return err;
}

namespace {

/* Returns the transforms of an item: of its response and, forward and back, of each segment. */
int64_t transforms_of(const gck_batch_item &item, int64_t points) {
    const int64_t hop = 2 * points - (item.taps_count + 2) / 4 * 4;
    return 1 + 2 * ((item.end - item.first + hop - 1) / hop);
}

} // namespace

int gck_batch_class_of(const gck_batch_item *item) {
    const bool floats = item->in.format.container == GC_F32 && item->in.step == 1 &&
                        item->out.format.container == GC_F32 && item->out.step == 1 &&
                        item->taps_count <= GCK_BATCH_PART_TAPS;
    /* Measured on an H200: 1.55 us of a multiprocessor for a short transform, 7.3 us for a long one. */
    const bool fits = item->taps_count <= GCK_BATCH_SHORT_POINTS &&
                      47 * transforms_of(*item, POINTS) > 10 * transforms_of(*item, GCK_BATCH_SHORT_POINTS);
    return (fits ? 2 : 0) + (floats ? 0 : 1);
}

namespace {

template <typename Exchange, bool Floats>
cudaError_t launch(const gck_batch_item *items, int count, const gck_batch_memory *memory, int *next_item,
                   cudaStream_t stream) {
    unsigned blocks = 0;
    cudaError_t err = allow_shared(batch<Exchange, Floats>, Exchange::BYTES);
    if (!err)
        err = persistent_grid(1, count, &blocks);
    if (err)
        return err;
    batch<Exchange, Floats>
        <<<blocks, THREADS, Exchange::BYTES, stream>>>(items, count, memory->twiddles, memory->spectra, next_item);
    return cudaGetLastError();
}

template <bool Floats>
cudaError_t launch_long(const gck_batch_item *items, int count, const gck_batch_memory *memory, int *next_item,
                        cudaStream_t stream) {
    int device = 0;
    gck_device d;
    cudaError_t err = cudaGetDevice(&device);
    if (!err)
        err = gck_device_query(device, &d);
    if (err)
        return err;
    /* The split exchange for floats alone would spill on compute capability 7.5. */
    return d.shared_bytes >= whole_exchange::BYTES
               ? launch<whole_exchange, Floats>(items, count, memory, next_item, stream)
               : launch<split_exchange, false>(items, count, memory, next_item, stream);
}

} // namespace

cudaError_t gck_batch(const gck_batch_item *items, const int *counts, const gck_batch_memory *memory,
                      cudaStream_t stream) {
    gck_batch_memory shorts = *memory;
    shorts.twiddles += TWIDDLES;
    cudaError_t err = cudaMemsetAsync(memory->next_item, 0, GCK_BATCH_CLASSES * sizeof *memory->next_item, stream);
    for (int c = 0; c < GCK_BATCH_CLASSES && !err; items += counts[c++]) {
        int *next = memory->next_item + c;
        if (counts[c] == 0)
            continue;
        if (c >= 2)
            err = gck_batch_short(items, counts[c], c % 2 == 0, &shorts, next, stream);
        else
            err = c == 0 ? launch_long<true>(items, counts[c], memory, next, stream)
                         : launch_long<false>(items, counts[c], memory, next, stream);
    }
    return err;
}
