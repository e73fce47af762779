/*
 * A transform of N = C R points as a matrix of C rows and R columns (overlap_save_3pass.cu has the method): the
 * transform of the columns for three_pass_columns.cu, and the sizes of the rows for three_pass_rows.cu too.
 */
#ifndef GC_KERNELS_THREE_PASS_CUH
#define GC_KERNELS_THREE_PASS_CUH

#include "kernels/device/fft_fma.cuh"

enum { ROW_POINTS = 1024, ROWS_PER_BLOCK = 4 };

typedef fft_fma<5, 5> row_fft;

enum {
    ROW_BYTES = ROWS_PER_BLOCK * row_fft::shared * (int)sizeof(float2), /* of shared memory per block */
    ROW_THREADS = 32 * ROWS_PER_BLOCK,
    SUM_STASHED = 8, /* pairs of points of a sum that job_both keeps in shared memory */
    BOTH_BYTES = ROW_BYTES + SUM_STASHED * ROW_THREADS * 16,
    ROW_TWIDDLES = row_fft::forward_twiddles + row_fft::inverse_twiddles
};

/* A complex number of a transform of halves, which then crosses the memory in half of the bytes: 13 bits for x and for
 * y, as multiples of 2^(e - 11) with 4096 added, and above them e + 36 in 6 bits, where 2^e is the power of two below
 * the larger part. From 2^27 on, which no transform of halves reaches, a number is infinite. The error is -77 dB, that
 * of rounding to a half -74. */
typedef unsigned gck_packed;

__device__ __forceinline__ void pack(gck_packed &to, float2 v) {
    const int larger = __float_as_int(fmaxf(fabsf(v.x), fabsf(v.y))) & 0x7f800000;
    const unsigned exponent = min(max(larger, 91 << 23), 154 << 23);
    const float scale = __uint_as_float(0x847ff800u - exponent); /* 2^(11 - e) (1 - 2^-13): nothing rounds to 4096 */
    const float zero = 12582912.0f + 4096.0f;                    /* 1.5 2^23: integers are in the lowest bits */
    const unsigned x = __float_as_uint(fmaf(v.x, scale, zero)), y = __float_as_uint(fmaf(v.y, scale, zero));
    to = ((exponent - (91u << 23)) << 3) + ((y << 13) | (x & 0x1fffu));
}

__device__ __forceinline__ float2 unpack(gck_packed w) {
    /* The exponent 2^(e + 101) is infinite for the largest e. */
    const float size = __uint_as_float(((w >> 3) & 0x1f800000u) | 0x60000000u) * (0x1p-101f * 8192.0f / 8191.0f);
    const float x = __uint_as_float(0x40800000u | ((w << 10) & 0x7ffc00u)); /* 4 + (x + 4096) / 2048 */
    const float y = __uint_as_float(0x40800000u | ((w >> 3) & 0x7ffc00u));
    return make_float2(fmaf(x, size, -6.0f * size), fmaf(y, size, -6.0f * size));
}

__device__ __forceinline__ void pack(float2 &to, float2 v) {
    to = v;
}

__device__ __forceinline__ float2 unpack(float2 v) {
    return v;
}

/* Two adjacent numbers, which are loaded and stored at a time. */
template <typename S> struct __align__(2 * sizeof(S)) adjacent {
    S a, b;
};

/* Transform of columns of 2^A 2^B points: thread k + columns t holds indices t + 2^B j of column k. */
template <int A, int B> struct column_fft {
    static const int P = 1 << A, T = 1 << B, C = P * T;
    static const int columns = C >= 1024 ? 8 : C >= 64 ? 16 : 32, threads = columns * T;
    static const int row = T * columns;
    static const int bytes = T > 1 ? P *row *(int)sizeof(float2) : 0; /* at most 64 KB, the limit of Turing */
    static const int forward_twiddles = C / 2, inverse_twiddles = C / 2;

    /* With eight columns, half a warp accesses two rows or two neighbours in a row. Exchanging the neighbours in every
     * other row keeps both free of bank conflicts; padding would need more than 64 KB. */
    static __device__ __forceinline__ constexpr int swap(int node) {
        return columns == 8 ? node % 2 * columns : 0;
    }

    /* Returns where index t of node j is stored. */
    static __device__ __forceinline__ int at_index(int j, int k, int t) {
        return j * row + ((t * columns + k) ^ swap(j));
    }

    /* Returns where register i of the second step is stored: index i mod T of node t + i / T * T. */
    static __device__ __forceinline__ int at_leaf(int i, int k, int t) {
        /* T is even: the parity of the node is that of t. */
        return (t + i / T * T) * row + k + i % T * columns + (i % 2 ? -swap(t) : swap(t));
    }

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int k, int t,
                                                   const float2 *__restrict__ twiddles) {
        forward_root<A, true>(v);
        if constexpr (B > 0) {
#pragma unroll
            for (int j = 0; j < P; j++)
                s[at_index(j, k, t)] = v[j];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < P; i++)
                v[i] = s[at_leaf(i, k, t)];
#pragma unroll
            for (int i = 0; i < P; i += T)
                forward_node<B>(v + i, twiddles + t + i, P);
        }
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int k, int t,
                                                   const float2 *__restrict__ twiddles) {
        if constexpr (B > 0) {
#pragma unroll
            for (int i = 0; i < P; i += T)
                inverse_leaves<B>(v + i);
#pragma unroll
            for (int i = 0; i < P; i++)
                s[at_leaf(i, k, t)] = v[i];
            __syncthreads();
#pragma unroll
            for (int j = 0; j < P; j++)
                v[j] = s[at_index(j, k, t)];
            inverse_blocks<A>(v, twiddles + t, T);
        } else {
            inverse_leaves<A>(v);
        }
    }

    /* Returns the leaf that register i holds after `forward`. */
    static __device__ __forceinline__ int leaf(int i, int t) {
        return ((t + i / T * T) << B) + i % T;
    }
};

/* Returns e^(2 pi i revolutions); Rough: with an error of 1e-6. */
template <bool Rough> __device__ __forceinline__ float2 unit_circle(float revolutions) {
    float2 w;
    if (Rough)
        __sincosf(6.2831853f * (revolutions - rintf(revolutions)), &w.y, &w.x);
    else
        sincospif(2 * revolutions, &w.y, &w.x);
    return w;
}

/* Multiplies leaf J of column n2 by e^(2 pi i n2 v(J) / R), or by its conjugate. v(J) is the sum of the fraction of the
 * node that this thread holds, a multiple of 2^-B, the bits of the leaf within the node, and a quarter of 1 / C. Angles
 * are multiples of 1 / 4 N revolution, exact in floats. */
template <int A, int B, bool Conjugate, bool Rough>
__device__ __forceinline__ void twiddle_column(float2 *v, int n2, int t) {
    typedef column_fft<A, B> f;
    const int BITS = B > 0 ? B : A, NODES = B > 0 ? f::P / f::T : 1;
    const float column = (float)n2 / ROW_POINTS;
    float2 factor[BITS];
#pragma unroll
    for (int i = 0; i < BITS; i++)
        factor[i] = unit_circle<Rough>(column / (2 << i));
#pragma unroll
    for (int n = 0; n < NODES; n++) {
        int node = t + n * f::T;
        int numerator = B > 0 ? (n2 * bit_reversed(node, A)) & (f::C * ROW_POINTS - 1) : 0;
        float2 base = unit_circle<Rough>((float)(4 * numerator + n2) * (1.0f / (4.0f * (float)f::C * ROW_POINTS)));
        twiddle_leaves<BITS, Conjugate>(v + (n << BITS), base, factor);
    }
}

#endif
