/*
 * Right-angle convolution: a real signal of 2 N samples, modulo x^2N + 1, is a complex polynomial modulo x^N - i whose
 * imaginary part is the second half of the signal (Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982,
 * section 5.3). N complex points thus convolve 2 N real samples, without a second signal in the imaginary part. A
 * sample that wraps around comes back with its sign inverted, at the same indices as in any circular convolution, and
 * overlap-save discards it.
 *
 * The inverse transform of fft_fma.cuh leaves index n multiplied by e^(i pi n / 2 N), the twist; `untwist` removes it.
 */
#ifndef GC_KERNELS_RIGHT_ANGLE_CUH
#define GC_KERNELS_RIGHT_ANGLE_CUH

#include "fft_fma.cuh"

/* Loads v[j] = x[n] + i x[n + P T] with n = t + T j. */
template <int P, int T>
__device__ __forceinline__ void load_right_angle(float2 *v, const float *__restrict__ x, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(__ldg(x + t + j * T), __ldg(x + t + j * T + P * T));
}

/* Returns v rotated by an angle as three shears, one fused multiply-add each. half: tan(angle / 2); sine: sin(angle).
 */
__device__ __forceinline__ float2 rotate(float2 v, float half, float sine) {
    v.x = fmaf(-half, v.y, v.x);
    v.y = fmaf(sine, v.x, v.y);
    v.x = fmaf(-half, v.y, v.x);
    return v;
}

/* Returns the angle that untwists index t, -pi t / 2 N, as the tangent of its half (x) and its sine (y). */
template <int N> __device__ __forceinline__ float2 untwist_angle(int t) {
    float sine, cosine;
    sincospif((float)t * (-0.25f / N), &sine, &cosine);
    return make_float2(sine / cosine, 2.0f * sine * cosine);
}

/* Removes the twist from v[j], index t + T j of N = P T; base: untwist_angle<N>(t). DiscardFirst: the first N / 2 real
 * samples are not used, which saves a shear. */
template <int P, bool DiscardFirst = false> __device__ __forceinline__ void untwist(float2 *v, float2 base) {
    unroll<P>([v, base](auto index) {
        constexpr int j = decltype(index)::value, k = j * (64 / P);
        const float2 w = rotate(v[j], -angle<k>::tan_of_half, -angle<k>::sin);
        v[j] = rotate(w, base.x, base.y);
        if constexpr (DiscardFirst && j < P / 2)
            v[j].x = 0.0f;
    });
}

/* Stores the real samples from index `overlap` on: y[n] for overlap <= n < 2 P T. */
template <int P, int T>
__device__ __forceinline__ void store_right_angle(const float2 *v, float *y, int overlap, int t) {
    y += t;
    overlap -= t;
    if (overlap <= P * T) {
#pragma unroll
        for (int j = 0; j < P; j++)
            y[(j + P) * T] = v[j].y;
#pragma unroll
        for (int j = 0; j < P; j++)
            if (j * T >= overlap)
                y[j * T] = v[j].x;
    } else {
#pragma unroll
        for (int j = 0; j < P; j++)
            if ((j + P) * T >= overlap)
                y[(j + P) * T] = v[j].y;
    }
}

#endif
