/* The steps of a convolution in a block of threads, in registers: register j of thread t holds two of 2 N points, t + T
 * j and t + T j + N (rows.cuh). Spectra are kept in the order in which the threads hold them. */
#ifndef GC_KERNELS_JOB_SEGMENTS_CUH
#define GC_KERNELS_JOB_SEGMENTS_CUH

#include "kernels/engine/overlap_save.cuh"
#include "kernels/engine/rows.cuh"

template <int P> __device__ __forceinline__ void scale(float2 *v, float by) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(v[j].x * by, v[j].y * by);
}

template <int P> __device__ __forceinline__ void clear(float2 *v) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(0.0f, 0.0f);
}

/* Loads what `keep` has stored. */
template <int P, int T> __device__ __forceinline__ void load_kept(float2 *v, const float2 *from) {
#pragma unroll
    for (int j = 0; j < P; j += 2) {
        const float4 w = *(const float4 *)(from + j * T);
        v[j] = make_float2(w.x, w.y);
        v[j + 1] = make_float2(w.z, w.w);
    }
}

/* Multiplies by a spectrum, or by its conjugate if sign is -1. */
template <int P, int T> __device__ __forceinline__ void multiply(float2 *v, const float2 *h, float sign) {
#pragma unroll
    for (int j = 0; j < P; j += 2) {
        const float4 w = *(const float4 *)(h + j * T);
        v[j] = mul(v[j], make_float2(w.x, sign * w.y));
        v[j + 1] = mul(v[j + 1], make_float2(w.z, sign * w.w));
    }
}

#endif
