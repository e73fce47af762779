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
#include "overlap_save.cuh"
#include "pcm.cuh"
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

/* Loads indices t + 512 j of a segment; index n is sample(at + n) where 0 <= at + n < length, and zero elsewhere. */
template <typename Sample>
__device__ __forceinline__ void load_samples(float2 *v, int64_t at, int64_t length, int t, Sample sample) {
    const int begin = (int)(at < 0 ? min((int64_t)2 * POINTS, -at) : 0);
    const int end = (int)max((int64_t)0, min((int64_t)2 * POINTS, length - at));
#pragma unroll
    for (int j = 0; j < POINTS_PER_THREAD; j++) {
        int n = t + THREADS * j, m = n + POINTS;
        v[j].x = n >= begin && n < end ? sample(at + n) : 0.0f;
        v[j].y = m >= begin && m < end ? sample(at + m) : 0.0f;
    }
}

/* Loads a segment of the `length` floats at x, index 0 being x[at]; samples outside them are zero. */
__device__ __forceinline__ void load_floats(float2 *v, const float *__restrict__ x, int64_t at, int64_t length, int t) {
    if (at >= 0 && at + 2 * POINTS <= length) {
        load_right_angle<POINTS_PER_THREAD, THREADS>(v, x + at, t);
        return;
    }
    load_samples(v, at, length, t, [x](int64_t n) { return __ldg(x + n); });
}

/* Loads a segment of a channel in any format. */
__device__ __forceinline__ void load_channel(float2 *v, const gck_samples &in, int64_t at, int64_t length, int t) {
    const int step = in.step;
    if (in.format.container == GC_F32 && step == 1) {
        load_floats(v, (const float *)in.at, at, length, t);
    } else if (in.format.container == GC_S16) {
        const short *x = (const short *)in.at;
        load_samples(v, at, length, t, [x, step](int64_t n) { return (float)__ldg(x + n * step) * 0x1p-15f; });
    } else {
        const void *x = in.at;
        const gc_container container = in.format.container;
        load_samples(v, at, length, t, [x, container, step](int64_t n) { return load_sample(x, container, n * step); });
    }
}

/* Stores index n of the segment to y[n - overlap] for overlap <= n < end, or adds it there. */
__device__ __forceinline__ void store_floats(const float2 *v, float *y, int overlap, int end, bool add, int t) {
#pragma unroll
    for (int j = 0; j < POINTS_PER_THREAD; j++) {
        int n = t + THREADS * j, m = n + POINTS;
        if (n >= overlap && n < end)
            y[n - overlap] = add ? y[n - overlap] + v[j].x : v[j].x;
        if (m >= overlap && m < end)
            y[m - overlap] = add ? y[m - overlap] + v[j].y : v[j].y;
    }
}

/* Returns the sum over the lanes of a warp, in lane 0. */
__device__ __forceinline__ unsigned warp_sum(unsigned x) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, x);
#else
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_down_sync(0xffffffffu, x, d);
    return x;
#endif
}

/* Stores index n of the segment to sample first + n - overlap of a channel in any format, or adds it there (floats). */
__device__ __forceinline__ void store_channel(const float2 *v, const gck_batch_item &item, int64_t first, int overlap,
                                              int end, bool add, int t) {
    const gck_samples &out = item.out;
    if (out.format.container == GC_F32 && out.step == 1) {
        store_floats(v, (float *)out.at + first, overlap, end, add, t);
    } else if (out.format.container == GC_F32) {
        float *y = (float *)out.at;
#pragma unroll
        for (int j = 0; j < 2 * POINTS_PER_THREAD; j++) {
            int n = t + THREADS * j;
            float x = j < POINTS_PER_THREAD ? v[j % POINTS_PER_THREAD].x : v[j % POINTS_PER_THREAD].y;
            float *to = y + (first + n - overlap) * out.step;
            if (n >= overlap && n < end)
                *to = add ? *to + x : x;
        }
    } else {
        const float scale = (float)(1u << (out.format.bits - 1));
        unsigned count = 0;
#pragma unroll
        for (int j = 0; j < 2 * POINTS_PER_THREAD; j++) {
            int n = t + THREADS * j;
            bool clipped = false;
            float x = j < POINTS_PER_THREAD ? v[j % POINTS_PER_THREAD].x : v[j % POINTS_PER_THREAD].y;
            if (n >= overlap && n < end)
                store_sample(out.at, out.format.container, (first + n - overlap) * out.step,
                             quantize(x, scale, 32 - out.format.bits, &clipped));
            count += clipped;
        }
        count = warp_sum(count);
        if (t % 32 == 0 && count)
            atomicAdd(item.clipped, (unsigned long long)count);
    }
}

/* Computes the scaled spectrum of `taps_count` taps from `taps` on, `dry` being added to the first of them. */
template <typename Exchange>
__device__ __forceinline__ void transform_response(float2 *v, float *s, const gck_batch_item &item, int64_t offset,
                                                   int taps_count, int t, const float2 *__restrict__ twiddles) {
    load_floats(v, item.taps + offset, 0, taps_count, t);
    const float scale = item.wet / POINTS;
#pragma unroll
    for (int j = 0; j < POINTS_PER_THREAD; j++)
        v[j] = make_float2(v[j].x * scale, v[j].y * scale);
    if (t == 0 && offset == 0)
        v[0].x += item.dry / POINTS;
    __syncthreads();
    forward<Exchange>(v, s, t, twiddles);
}

/* Persistent blocks; each claims items until none is left. spectra: POINTS complex numbers per block. */
template <typename Exchange>
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
        for (int64_t offset = 0; offset < item.taps_count; offset += GCK_BATCH_PART_TAPS) {
            const int part = (int)min(item.taps_count - offset, (int64_t)GCK_BATCH_PART_TAPS);
            transform_response<Exchange>(v, shared, item, offset, part, t, twiddles);
#pragma unroll
            for (int j = 0; j < POINTS_PER_THREAD; j += 2)
                *(float4 *)(h + j * THREADS) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
            const int overlap = (part + 2) / 4 * 4, hop = 2 * POINTS - overlap;
            for (int64_t n = item.first; n < item.end; n += hop) {
                load_channel(v, item.in, n - overlap - offset, item.frames, t);
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
                store_channel(v, item, n, overlap, (int)min((int64_t)2 * POINTS, item.end - n + overlap), offset > 0,
                              t);
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
}

cudaError_t gck_batch_query(int device, gck_batch_sizes *sizes) {
    gck_device d;
    cudaError_t err = gck_device_query(device, &d);
    if (!err && d.shared_bytes < split_exchange::BYTES)
        err = cudaErrorNotSupported;
    *sizes = {TWIDDLES, d.multiprocessors, (int64_t)d.multiprocessors * POINTS};
    return err;
}

namespace {

template <typename Exchange>
cudaError_t launch(const gck_batch_item *items, int count, const gck_batch_memory *memory, cudaStream_t stream) {
    unsigned blocks = 0;
    cudaError_t err = allow_shared(batch<Exchange>, Exchange::BYTES);
    if (!err)
        err = persistent_grid(1, count, &blocks);
    if (!err)
        err = cudaMemsetAsync(memory->next_item, 0, sizeof *memory->next_item, stream);
    if (err)
        return err;
    batch<Exchange><<<blocks, THREADS, Exchange::BYTES, stream>>>(items, count, memory->twiddles, memory->spectra,
                                                                  memory->next_item);
    return cudaGetLastError();
}

} // namespace

cudaError_t gck_batch(const gck_batch_item *items, int count, const gck_batch_memory *memory, cudaStream_t stream) {
    int device = 0;
    gck_device d;
    cudaError_t err = cudaGetDevice(&device);
    if (!err)
        err = gck_device_query(device, &d);
    if (err)
        return err;
    return d.shared_bytes >= whole_exchange::BYTES ? launch<whole_exchange>(items, count, memory, stream)
                                                   : launch<split_exchange>(items, count, memory, stream);
}
