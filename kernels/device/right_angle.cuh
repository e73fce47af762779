/*
 * A real signal of 2 N places, modulo x^2N + 1, is a complex polynomial modulo x^N - i: the second half is the
 * imaginary part (right-angle convolution: Nussbaumer, Fast Fourier Transform and Convolution Algorithms, 1982,
 * section 5.3). N complex points thus convolve 2 N real ones, without a second signal beside them; what wraps around
 * comes back with its sign turned, and spoils the same places as ever.
 *
 * A tree's way back (tree.cuh) leaves place n turned by e^(i pi n / 2 N).
 */
#ifndef GC_KERNELS_FOLDED_CUH
#define GC_KERNELS_FOLDED_CUH

#include "tree.cuh"

/* v[j] = place t + T j of what begins at x. */
template <int P, int T> __device__ __forceinline__ void load_folded(float2 *v, const float *__restrict__ x, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(__ldg(x + t + j * T), __ldg(x + t + j * T + P * T));
}

/* v turned by an angle, half = tan(angle / 2), sine = sin(angle): three shears, a fused multiply-add each. */
__device__ __forceinline__ float2 turned(float2 v, float half, float sine) {
    v.x = fmaf(-half, v.y, v.x);
    v.y = fmaf(sine, v.x, v.y);
    v.x = fmaf(-half, v.y, v.x);
    return v;
}

/* What place t is turned back by, -pi t / 2 N, as tan of its half and sin. */
template <int N> __device__ __forceinline__ float2 unfolding(int t) {
    float sine, cosine;
    sincospif((float)t * (-0.25f / N), &sine, &cosine);
    return make_float2(sine / cosine, 2.0f * sine * cosine);
}

/* v[j] = place t + T j of N = P T, turned back; base: unfolding<N>(t). Late: nobody wants the first N / 2 places, so
 * that a shear is saved. */
template <int P, bool Late = false> __device__ __forceinline__ void unfold(float2 *v, float2 base) {
    unrolled<P>([v, base](auto number) {
        constexpr int j = decltype(number)::value, k = j * (64 / P);
        const float2 half_way = turned(v[j], -angle<k>::tan_of_half, -angle<k>::sin);
        v[j] = turned(half_way, base.x, base.y);
        if constexpr (Late && j < P / 2)
            v[j].x = 0.0f;
    });
}

/* Places `before` and later go to y. */
template <int P, int T> __device__ __forceinline__ void store_folded(const float2 *v, float *y, int before, int t) {
    y += t;
    before -= t;
    if (before <= P * T) {
#pragma unroll
        for (int j = 0; j < P; j++)
            y[(j + P) * T] = v[j].y;
#pragma unroll
        for (int j = 0; j < P; j++)
            if (j * T >= before)
                y[j * T] = v[j].x;
    } else {
#pragma unroll
        for (int j = 0; j < P; j++)
            if ((j + P) * T >= before)
                y[(j + P) * T] = v[j].y;
    }
}

#endif
