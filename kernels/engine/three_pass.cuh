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
    ROW_TWIDDLES = row_fft::forward_twiddles + row_fft::inverse_twiddles
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

/* Returns e^(2 pi i revolutions). */
__device__ __forceinline__ float2 unit_circle(float revolutions) {
    float2 w;
    sincospif(2 * revolutions, &w.y, &w.x);
    return w;
}

/* Multiplies leaf J of column n2 by e^(2 pi i n2 v(J) / R), or by its conjugate. v(J) is the sum of the fraction of the
 * node that this thread holds, a multiple of 2^-B, the bits of the leaf within the node, and a quarter of 1 / C. Angles
 * are multiples of 1 / 4 N revolution, exact in floats. */
template <int A, int B, bool Conjugate> __device__ __forceinline__ void twiddle_column(float2 *v, int n2, int t) {
    typedef column_fft<A, B> f;
    const int BITS = B > 0 ? B : A, NODES = B > 0 ? f::P / f::T : 1;
    const float column = (float)n2 / ROW_POINTS;
    float2 factor[BITS];
#pragma unroll
    for (int i = 0; i < BITS; i++)
        factor[i] = unit_circle(column / (2 << i));
#pragma unroll
    for (int n = 0; n < NODES; n++) {
        int node = t + n * f::T;
        int numerator = B > 0 ? (n2 * bit_reversed(node, A)) & (f::C * ROW_POINTS - 1) : 0;
        float2 base = unit_circle((float)(4 * numerator + n2) * (1.0f / (4.0f * (float)f::C * ROW_POINTS)));
        twiddle_leaves<BITS, Conjugate>(v + (n << BITS), base, factor);
    }
}

#endif
