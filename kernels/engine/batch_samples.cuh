/*
 * Samples of batches (batch.cu, batch_short.cu): segments of channels in any format of a file. Register j of thread t
 * holds samples t + T j (real part) and t + T j + P T (imaginary part) of a segment of 2 P T.
 *
 * Memory: adjacent threads access adjacent samples.
 */
#ifndef GC_KERNELS_BATCH_SAMPLES_CUH
#define GC_KERNELS_BATCH_SAMPLES_CUH

#include "overlap_save.cuh"
#include "pcm.cuh"

/* Loads indices t + T j of a segment; index n is sample(at + n) where 0 <= at + n < length, and zero elsewhere. */
template <int P, int T, typename Sample>
__device__ __forceinline__ void load_samples(float2 *v, int64_t at, int64_t length, int t, Sample sample) {
    const int begin = (int)(at < 0 ? min((int64_t)2 * P * T, -at) : 0);
    const int end = (int)max((int64_t)0, min((int64_t)2 * P * T, length - at));
#pragma unroll
    for (int j = 0; j < P; j++) {
        int n = t + T * j, m = n + P * T;
        v[j].x = n >= begin && n < end ? sample(at + n) : 0.0f;
        v[j].y = m >= begin && m < end ? sample(at + m) : 0.0f;
    }
}

/* Loads a segment of the `length` floats at x, index 0 being x[at]; samples outside them are zero. */
template <int P, int T>
__device__ __forceinline__ void load_floats(float2 *v, const float *__restrict__ x, int64_t at, int64_t length, int t) {
    if (at >= 0 && at + 2 * P * T <= length) {
        load_right_angle<P, T>(v, x + at, t);
        return;
    }
    load_samples<P, T>(v, at, length, t, [x](int64_t n) { return __ldg(x + n); });
}

/* Loads a segment of a channel in any format; Floats: of adjacent floats. */
template <int P, int T, bool Floats>
__device__ __forceinline__ void load_channel(float2 *v, const gck_samples &in, int64_t at, int64_t length, int t) {
    const int step = in.step;
    if (Floats || (in.format.container == GC_F32 && step == 1)) {
        load_floats<P, T>(v, (const float *)in.at, at, length, t);
    } else if (in.format.container == GC_S16) {
        const short *x = (const short *)in.at;
        load_samples<P, T>(v, at, length, t, [x, step](int64_t n) { return (float)__ldg(x + n * step) * 0x1p-15f; });
    } else {
        const void *x = in.at;
        const gc_container container = in.format.container;
        load_samples<P, T>(v, at, length, t,
                           [x, container, step](int64_t n) { return load_sample(x, container, n * step); });
    }
}

/* Stores index n of the segment to y[n - overlap] for overlap <= n < end, or adds it there. */
template <int P, int T, bool Add>
__device__ __forceinline__ void store_floats(const float2 *v, float *y, int overlap, int end, int t) {
#pragma unroll
    for (int j = 0; j < P; j++) {
        int n = t + T * j, m = n + P * T;
        if (n >= overlap && n < end)
            y[n - overlap] = Add ? y[n - overlap] + v[j].x : v[j].x;
        if (m >= overlap && m < end)
            y[m - overlap] = Add ? y[m - overlap] + v[j].y : v[j].y;
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

/* Stores index n of the segment to sample first + n - overlap of a channel in any format, or adds it there (floats).
 * Floats: adjacent floats, not added. */
template <int P, int T, bool Floats>
__device__ __forceinline__ void store_channel(const float2 *v, const gck_batch_item &item, int64_t first, int overlap,
                                              int end, bool add, int t) {
    const gck_samples &out = item.out;
    if (Floats || (out.format.container == GC_F32 && out.step == 1 && !add)) {
        store_floats<P, T, false>(v, (float *)out.at + first, overlap, end, t);
    } else if (out.format.container == GC_F32 && out.step == 1) {
        store_floats<P, T, true>(v, (float *)out.at + first, overlap, end, t);
    } else if (out.format.container == GC_F32) {
        float *y = (float *)out.at;
#pragma unroll
        for (int j = 0; j < 2 * P; j++) {
            int n = t + T * j;
            float x = j < P ? v[j % P].x : v[j % P].y;
            float *to = y + (first + n - overlap) * out.step;
            if (n >= overlap && n < end)
                *to = add ? *to + x : x;
        }
    } else {
        const float scale = (float)(1u << (out.format.bits - 1));
        unsigned count = 0;
#pragma unroll
        for (int j = 0; j < 2 * P; j++) {
            int n = t + T * j;
            bool clipped = false;
            float x = j < P ? v[j % P].x : v[j % P].y;
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

#endif
