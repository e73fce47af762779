/*
 * Many signals, each through a response of its own: overlap-save with a block's whole transform on the chip, and the
 * response's spectrum made where it is used.
 *
 * A segment of a signal, 2 N places, N = 16384, is folded into N complex points (folded.cuh).
 *
 *      5 levels    thread t holds places t + 512 j              then one exchange between all threads
 *      5 levels    16 threads a node of 512 places              then one within those 16
 *      4 levels    a thread holds nodes u and u + 16 of its 32 whole
 *
 * and back the same way. A part of a response has GCK_BATCH_PART taps at most; longer ones are done part by part,
 * adding up. Spectra stay in the order in which threads hold them, one for each block of the grid, in the second-level
 * cache. Device memory sees samples once in, once out, and the turns of the last level nobody.
 */
#include "overlap_save.cuh"
#include "pcm.cuh"
#include "twiddles.h"

/* Only multiprocessors with room for a whole transform beside the cache: compute capability 8.0, 8.7, 9.0, 10.x. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 870 ||                                         \
    (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
#define BATCH_HAS_ROOM
#endif

namespace {

enum { THREADS = 512, EACH = 32, POINTS = THREADS * EACH, GROUP = 16, SUB_ROW = GROUP + 1, ROW = EACH * SUB_ROW };
enum { SHARED = EACH * ROW * (int)sizeof(float2) };
/* The tables, one behind the other. */
enum {
    DOWN_A = 0,
    DOWN_B = DOWN_A + 32 * 16,
    UP_A = DOWN_B + 1024 * 8,
    UP_B = UP_A + 16 * 16,
    TURNS = UP_B + 512 * 16
};

#ifdef BATCH_HAS_ROOM

__device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
    const int node = t / GROUP, u = t % GROUP;
    float2 *row = s + node * ROW;
    down_root<5, true>(v);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        s[j * ROW + t] = v[j];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < EACH; q++)
        v[q] = row[u + GROUP * q];
    down_node<5>(v, turns + DOWN_A + node, 32);
    __syncwarp(); /* the row is its 16 threads' own from here on */
#pragma unroll
    for (int e = 0; e < EACH; e++)
        row[e * SUB_ROW + u] = v[e];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++)
        v[i] = row[(u + i / GROUP * GROUP) * SUB_ROW + i % GROUP];
    down_node<4>(v, turns + DOWN_B + node * EACH + u, 1024);
    down_node<4>(v + GROUP, turns + DOWN_B + node * EACH + u + GROUP, 1024);
}

__device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ turns) {
    const int node = t / GROUP, u = t % GROUP;
    float2 *row = s + node * ROW;
    up_leaves<4>(v);
    up_leaves<4>(v + GROUP);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++)
        row[(u + i / GROUP * GROUP) * SUB_ROW + i % GROUP] = v[i];
    __syncwarp();
#pragma unroll
    for (int e = 0; e < EACH; e++)
        v[e] = row[e * SUB_ROW + u];
    up_blocks<5>(v, turns + UP_A + u, GROUP);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < EACH; q++)
        row[u + GROUP * q] = v[q];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EACH; j++)
        v[j] = s[j * ROW + t];
    up_blocks<5>(v, turns + UP_B + t, THREADS);
}

/* Places t + 512 j, of which sample(n) is place n - at, as far as 0 <= n < length; the rest is silence. */
template <typename Sample>
__device__ __forceinline__ void load_by(float2 *v, int64_t at, int64_t length, int t, Sample sample) {
    const int begin = (int)(at < 0 ? min((int64_t)2 * POINTS, -at) : 0);
    const int end = (int)max((int64_t)0, min((int64_t)2 * POINTS, length - at));
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int n = t + THREADS * j, m = n + POINTS;
        v[j].x = n >= begin && n < end ? sample(at + n) : 0.0f;
        v[j].y = m >= begin && m < end ? sample(at + m) : 0.0f;
    }
}

/* Places t + 512 j of a stretch of `length` samples that begins at x, folded: outside it there is silence. `at`: where
 * the segment's place 0 lies in the stretch. */
__device__ __forceinline__ void load_within(float2 *v, const float *__restrict__ x, int64_t at, int64_t length, int t) {
    if (at >= 0 && at + 2 * POINTS <= length) {
        load_folded<EACH, THREADS>(v, x + at, t);
        return;
    }
    load_by(v, at, length, t, [x](int64_t n) { return __ldg(x + n); });
}

/* The same of a channel. */
__device__ __forceinline__ void load_channel(float2 *v, const gck_samples &in, int64_t at, int64_t length, int t) {
    const int step = in.step;
    if (in.format.container == GC_F32 && step == 1) {
        load_within(v, (const float *)in.at, at, length, t);
    } else if (in.format.container == GC_S16) {
        const short *x = (const short *)in.at;
        load_by(v, at, length, t, [x, step](int64_t n) { return (float)__ldg(x + n * step) * 0x1p-15f; });
    } else {
        const void *x = in.at;
        const gc_container container = in.format.container;
        load_by(v, at, length, t, [x, container, step](int64_t n) { return sample_of(x, container, n * step); });
    }
}

/* To y[n - before] for before <= n < end, or added to what stands there. */
__device__ __forceinline__ void store_within(const float2 *v, float *y, int before, int end, bool add, int t) {
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        int n = t + THREADS * j, m = n + POINTS;
        if (n >= before && n < end)
            y[n - before] = add ? y[n - before] + v[j].x : v[j].x;
        if (m >= before && m < end)
            y[m - before] = add ? y[m - before] + v[j].y : v[j].y;
    }
}

/* The same to a channel, whose output n is place n - before. */
__device__ __forceinline__ void store_channel(const float2 *v, const gck_batch_item &item, int64_t first, int before,
                                              int end, bool add, int t) {
    const gck_samples &out = item.out;
    if (out.format.container == GC_F32 && out.step == 1) {
        store_within(v, (float *)out.at + first, before, end, add, t);
    } else if (out.format.container == GC_F32) {
        float *y = (float *)out.at;
#pragma unroll
        for (int j = 0; j < 2 * EACH; j++) {
            int n = t + THREADS * j;
            float x = j < EACH ? v[j % EACH].x : v[j % EACH].y, *to = y + (first + n - before) * out.step;
            if (n >= before && n < end)
                *to = add ? *to + x : x;
        }
    } else {
        const float scale = (float)(1u << (out.format.bits - 1));
        unsigned count = 0;
#pragma unroll
        for (int j = 0; j < 2 * EACH; j++) {
            int n = t + THREADS * j;
            bool clipped = false;
            if (n >= before && n < end)
                save(out.at, out.format.container, (first + n - before) * out.step,
                     quantize(j < EACH ? v[j % EACH].x : v[j % EACH].y, scale, 32 - out.format.bits, &clipped));
            count += clipped;
        }
        count = __reduce_add_sync(0xffffffffu, count);
        if (t % 32 == 0 && count)
            atomicAdd(item.clipped, (unsigned long long)count);
    }
}

#endif

__global__ void __launch_bounds__(THREADS, 1) batch(const gck_batch_item *__restrict__ items, int count,
                                                    const float2 *__restrict__ turns, float2 *spectra, int *ticket) {
#ifdef BATCH_HAS_ROOM
    extern __shared__ __align__(16) float2 shared[];
    __shared__ int mine;
    const int t = threadIdx.x;
    float2 *h = spectra + (int64_t)blockIdx.x * POINTS + 2 * t, v[EACH];
    for (;;) {
        if (t == 0)
            mine = atomicAdd(ticket, 1);
        __syncthreads();
        const int at = mine;
        if (at >= count)
            return;
        const gck_batch_item item = items[at];
        /* A response that is longer than a part is the sum of its parts, each of them late by those before it. */
        for (int64_t late = 0; late < item.taps_count; late += GCK_BATCH_PART) {
            const int part = (int)min(item.taps_count - late, (int64_t)GCK_BATCH_PART);
            load_within(v, item.taps + late, 0, part, t);
            const float scale = item.wet / POINTS;
#pragma unroll
            for (int j = 0; j < EACH; j++)
                v[j] = make_float2(v[j].x * scale, v[j].y * scale);
            if (t == 0 && late == 0)
                v[0].x += item.dry / POINTS;
            __syncthreads();
            forward(v, shared, t, turns);
#pragma unroll
            for (int j = 0; j < EACH; j += 2)
                *(float4 *)(h + j * THREADS) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
            const int before = (part + 2) / 4 * 4, hop = 2 * POINTS - before;
            for (int64_t n = item.first; n < item.end; n += hop) {
                load_channel(v, item.in, n - before - late, item.frames, t);
                __syncthreads();
                forward(v, shared, t, turns);
#pragma unroll
                for (int j = 0; j < EACH; j += 2) {
                    float4 w = *(const float4 *)(h + j * THREADS);
                    v[j] = mul(v[j], make_float2(w.x, w.y));
                    v[j + 1] = mul(v[j + 1], make_float2(w.z, w.w));
                }
                inverse(v, shared, t, turns);
                unfold<EACH>(v, unfolding<POINTS>(t));
                store_channel(v, item, n, before, (int)min((int64_t)2 * POINTS, item.end - n + before), late > 0, t);
            }
        }
        __syncthreads();
    }
#endif
}

} // namespace

void gck_batch_turns(float2 *turns) {
    fill_down(turns + DOWN_A, 5, 5, 0.25);
    fill_down(turns + DOWN_B, 10, 4, 0.25);
    fill_up(turns + UP_A, 5, GROUP);
    fill_up(turns + UP_B, 5, THREADS);
}

cudaError_t gck_batch_size(int device, gck_batch_needs *needs) {
    int multiprocessors = 0, room = 0;
    cudaError_t failed = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (!failed)
        failed = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (!failed && room < SHARED)
        failed = cudaErrorNotSupported;
    *needs = {TURNS, multiprocessors, (int64_t)multiprocessors * POINTS};
    return failed;
}

cudaError_t gck_batch(const gck_batch_item *items, int count, const float2 *turns, float2 *spectra, int *ticket,
                      cudaStream_t stream) {
    int multiprocessors = 0;
    cudaError_t failed = allow_shared(batch, SHARED);
    if (!failed)
        failed = count_multiprocessors(&multiprocessors);
    if (!failed)
        failed = cudaMemsetAsync(ticket, 0, sizeof *ticket, stream);
    if (failed)
        return failed;
    batch<<<min(count, multiprocessors), THREADS, SHARED, stream>>>(items, count, turns, spectra, ticket);
    return cudaGetLastError();
}
