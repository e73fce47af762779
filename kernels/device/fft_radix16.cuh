/*
 * Complex FFT of radix 16: N points by N / 16 threads, 16 points of each in registers, exchanged through shared memory.
 *
 * Why there are two FFT families: this one computes the ordinary DFT for every power of two from 32 to 8192 points with
 * the one table exp(-2 pi i m / N), and 16 points per thread use few registers, which leaves room for the sums over
 * partitions. The partitioned kernels (partitioned.cu, bank.cu) use it. fft_fma.cuh takes fewer operations
 * (every butterfly is fused multiply-adds) but needs 16 to 64 points per thread and tables of its own for each size.
 * The kernels whose speed the transform decides (overlap_save.cu, overlap_save_3pass.cu, batch.cu) use that one. To
 * replace one family by the other changes the speed and the rounding of the kernels concerned.
 *
 * The forward transform is decimation in frequency, in place. A stage of length L and radix R computes, for each offset
 * u < L / R,
 *
 *      X_k[u] = W_L^(u k)  sum over j of  x[u + j L/R]  W_R^(j k),      W_n = exp(-2 pi i / n)
 *
 * and leaves X_k as sub-transform k of length L / R at the same indices (Cooley & Tukey 1965; Van Loan, Computational
 * Frameworks for the FFT, 1.8). All stages but the last have radix 16; the last has the remaining radix 2, 4, 8 or 16.
 * The result stays in this digit-reversed order, which does not matter for products of spectra; the inverse runs the
 * same stages backwards.
 *
 *      registers   before the first stage and after the inverse   v[j] = x[t + j N/16]
 *                  between forward and inverse                    v[j] = entry 16 t + j of the digit-reversed spectrum
 *
 * Every stage writes the indices that it read, so that one barrier per exchange is enough. Two forward transforms
 * through the same memory need one more barrier between them: the second writes where other threads may still read. An
 * exchange inside sub-transforms of at most 512 points stays inside a warp. Index p is stored at p + p / 16, which
 * makes both access patterns free of bank conflicts.
 */
#ifndef GC_KERNELS_FFT_RADIX16_CUH
#define GC_KERNELS_FFT_RADIX16_CUH

#include "complex.cuh"

template <int N> struct fft_radix16 {
    static const int threads = N / 16;
    static const int shared = N + N / 16; /* float2 */
};

/* Returns where index p is stored. padded_index(p + q) = padded_index(p) + padded_index(q) for all p and q added in
 * this file: q is a multiple of 16, or p and q have no common bit below it. With a constant q, sixteen addresses are
 * one register and sixteen constant offsets. */
__device__ __forceinline__ constexpr int padded_index(int index) {
    return index + (index >> 4);
}

template <bool Inverse> __device__ __forceinline__ void radix4(float2 &a, float2 &b, float2 &c, float2 &d) {
    float2 s = add(a, c), t = sub(a, c), u = add(b, d), q = rotate_quarter<Inverse>(sub(b, d));
    a = add(s, u);
    b = add(t, q);
    c = sub(s, u);
    d = sub(t, q);
}

/* Returns v times W_16^Power, or times its conjugate if Inverse. */
template <bool Inverse, int Power> __device__ __forceinline__ float2 multiply_w16(float2 v) {
    const float c1 = 0.92387953251128674f, s1 = 0.38268343236508977f, h = 0.70710678118654752f;
    if (Power == 0)
        return v;
    if (Power == 4)
        return rotate_quarter<Inverse>(v);
    float2 w = Power == 1   ? make_float2(c1, -s1)
               : Power == 2 ? make_float2(h, -h)
               : Power == 3 ? make_float2(s1, -c1)
               : Power == 6 ? make_float2(-h, -h)
                            : make_float2(-c1, s1); /* 9 */
    if (Power == 2 || Power == 6) {                 /* one sum and one difference, each scaled once */
        float2 r = Inverse ? make_float2(v.x - v.y, v.y + v.x) : make_float2(v.x + v.y, v.y - v.x);
        return Power == 2 ? make_float2(r.x * h, r.y * h)
                          : (Inverse ? make_float2(-r.y * h, r.x * h) : make_float2(r.y * h, -r.x * h));
    }
    return Inverse ? mul_conj(v, w) : mul(v, w);
}

/* Transforms sixteen points: two layers of radix 4, natural order in and out. */
template <bool Inverse> __device__ __forceinline__ void radix16(float2 *v) {
#pragma unroll
    for (int j = 0; j < 4; j++)
        radix4<Inverse>(v[j], v[j + 4], v[j + 8], v[j + 12]);
    v[5] = multiply_w16<Inverse, 1>(v[5]);
    v[9] = multiply_w16<Inverse, 2>(v[9]);
    v[13] = multiply_w16<Inverse, 3>(v[13]);
    v[6] = multiply_w16<Inverse, 2>(v[6]);
    v[10] = multiply_w16<Inverse, 4>(v[10]);
    v[14] = multiply_w16<Inverse, 6>(v[14]);
    v[7] = multiply_w16<Inverse, 3>(v[7]);
    v[11] = multiply_w16<Inverse, 6>(v[11]);
    v[15] = multiply_w16<Inverse, 9>(v[15]);
#pragma unroll
    for (int k = 0; k < 4; k++)
        radix4<Inverse>(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
        /* Output k1 + 4 k2 is now in register 4 k1 + k2: the compiler renames registers, no instruction. */
#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int b = a + 1; b < 4; b++) {
            float2 x = v[4 * a + b];
            v[4 * a + b] = v[4 * b + a];
            v[4 * b + a] = x;
        }
}

/* Computes the last stage: 16 / R transforms of R adjacent registers. */
template <bool Inverse, int R> __device__ __forceinline__ void last_stage(float2 *v) {
    const float h = 0.70710678118654752f;
    if (R == 16)
        radix16<Inverse>(v);
#pragma unroll
    for (int g = 0; R < 16 && g < 16; g += R) {
        float2 *p = v + g;
        if (R == 2) {
            float2 a = p[0];
            p[0] = add(a, p[1]);
            p[1] = sub(a, p[1]);
        } else if (R == 4) {
            radix4<Inverse>(p[0], p[1], p[2], p[3]);
        } else {
            float2 e[4] = {p[0], p[2], p[4], p[6]}, o[4] = {p[1], p[3], p[5], p[7]};
            radix4<Inverse>(e[0], e[1], e[2], e[3]);
            radix4<Inverse>(o[0], o[1], o[2], o[3]);
            float2 o1 =
                Inverse ? make_float2(o[1].x - o[1].y, o[1].y + o[1].x) : make_float2(o[1].x + o[1].y, o[1].y - o[1].x);
            float2 o3 = Inverse ? make_float2(-o[3].x - o[3].y, o[3].x - o[3].y)
                                : make_float2(o[3].y - o[3].x, -o[3].x - o[3].y);
            o[1] = make_float2(o1.x * h, o1.y * h);
            o[2] = rotate_quarter<Inverse>(o[2]);
            o[3] = make_float2(o3.x * h, o3.y * h);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                p[k] = add(e[k], o[k]);
                p[k + 4] = sub(e[k], o[k]);
            }
        }
    }
}

/* Multiplies by the twiddles of a stage of length L, from a table of W_N^m. Six are read (powers 1, 2, 3, 4, 8, 12),
 * nine are products of two, so that each is within 1.5 roundings of exact. */
template <int N, int L, bool Inverse>
__device__ __forceinline__ void apply_twiddles(float2 *v, int u, const float2 *__restrict__ table) {
    const int step = N / L;
    float2 w[4], q[4];
#pragma unroll
    for (int k = 1; k < 4; k++) {
        w[k] = __ldg(table + u * k * step);
        q[k] = __ldg(table + u * (4 * k) * step);
    }
#pragma unroll
    for (int k = 1; k < 16; k++) {
        float2 f = k < 4 ? w[k & 3] : (k & 3) == 0 ? q[k >> 2] : mul(q[k >> 2], w[k & 3]);
        v[k] = Inverse ? mul_conj(v[k], f) : mul(v[k], f);
    }
}

/* Waits for the threads that share a sub-transform of POINTS points: a warp, or the block. */
template <int POINTS> __device__ __forceinline__ void exchange_barrier() {
    if (POINTS <= 512)
        __syncwarp();
    else
        __syncthreads();
}

/* The stage of length L and all shorter ones. s: the transform's shared memory; t: the thread's number within the
 * transform; table: W_N^m for m < N. */
template <int N, int L> struct radix16_stages {
    static const int S = L / 16;

    static __device__ __forceinline__ int first(int t) {
        return t / S * L + t % S;
    }

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *table) {
        if (L == N)
            radix16<false>(v);
        else {
#pragma unroll
            for (int j = 0; j < 16; j++)
                v[j] = s[padded_index(first(t)) + padded_index(j * S)];
            radix16<false>(v);
        }
        apply_twiddles<N, L, false>(v, t % S, table);
#pragma unroll
        for (int k = 0; k < 16; k++)
            s[padded_index(first(t)) + padded_index(k * S)] = v[k];
        exchange_barrier<L>();
        if constexpr (S > 16) {
            radix16_stages<N, S>::forward(v, s, t, table);
        } else {
#pragma unroll
            for (int j = 0; j < 16; j++)
                v[j] = s[padded_index(16 * t) + j];
            last_stage<false, S>(v);
        }
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *table) {
        if constexpr (S > 16) {
            radix16_stages<N, S>::inverse(v, s, t, table);
        } else {
            last_stage<true, S>(v);
#pragma unroll
            for (int j = 0; j < 16; j++)
                s[padded_index(16 * t) + j] = v[j];
        }
        exchange_barrier<L>();
#pragma unroll
        for (int k = 0; k < 16; k++)
            v[k] = s[padded_index(first(t)) + padded_index(k * S)];
        apply_twiddles<N, L, true>(v, t % S, table);
        radix16<true>(v);
        if (L != N) {
#pragma unroll
            for (int j = 0; j < 16; j++)
                s[padded_index(first(t)) + padded_index(j * S)] = v[j];
        }
    }
};

template <int N> __device__ __forceinline__ void fft_radix16_forward(float2 *v, float2 *s, int t, const float2 *table) {
    radix16_stages<N, N>::forward(v, s, t, table);
}

template <int N> __device__ __forceinline__ void fft_radix16_inverse(float2 *v, float2 *s, int t, const float2 *table) {
    radix16_stages<N, N>::inverse(v, s, t, table);
}

#endif
