/*
 * Complex FFT of P P G points by P G threads with P points each: P = 32 and G = 4, 8 or 16, or P = 16 and G = 16.
 * Polynomials modulo x^N - i and the butterflies of fft_fma.cuh. For convolution: the spectrum stays in the order in
 * which threads hold it.
 *
 *      log2 P      thread t holds indices t + P G j             then one exchange between all threads
 *      log2 P      G threads share a node of P G points         then one exchange within those G
 *      log2 G      a thread holds the nodes u, u + G, ... of its P whole
 *
 * and back in the opposite order. Shared memory: a row for each of P nodes. The padding of a row keeps the accesses of
 * half a warp free of bank conflicts in every step.
 */
#ifndef GC_KERNELS_FFT_GROUPED_CUH
#define GC_KERNELS_FFT_GROUPED_CUH

#include "fft_fma.cuh"

/* LEVELS: log2 of G; HELD: log2 of P. forward and inverse each have a barrier before they read what other warps wrote;
 * the caller adds one between the end of a transform and the start of the next. */
template <int LEVELS, int HELD = 5> struct grouped_fft {
    static const int GROUP = 1 << LEVELS, P = 1 << HELD, T = P * GROUP, N = P * T;
    static const int SUB_ROW = GROUP + 1, ROW = P * SUB_ROW + (GROUP < 16 ? GROUP : 0);
    static const int shared = P * ROW; /* float2 */
    /* Offsets of the twiddle tables of the four table-driven steps, and their total size. */
    static const int FORWARD_A = 0, FORWARD_B = FORWARD_A + P * P / 2, INVERSE_A = FORWARD_B + P * P * GROUP / 2,
                     INVERSE_B = INVERSE_A + GROUP * P / 2, twiddles = INVERSE_B + T * P / 2;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        float2 *row = s + node * ROW;
        forward_root<HELD, true>(v);
#pragma unroll
        for (int j = 0; j < P; j++)
            s[j * ROW + t] = v[j];
        __syncthreads();
#pragma unroll
        for (int q = 0; q < P; q++)
            v[q] = row[u + GROUP * q];
        forward_node<HELD>(v, table + FORWARD_A + node, P);
        __syncwarp(); /* from here on only the threads of the node use the row */
#pragma unroll
        for (int e = 0; e < P; e++)
            row[e * SUB_ROW + u] = v[e];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < P; i++)
            v[i] = row[(u + i / GROUP * GROUP) * SUB_ROW + i % GROUP];
#pragma unroll
        for (int i = 0; i < P; i += GROUP)
            forward_node<LEVELS>(v + i, table + FORWARD_B + node * P + u + i, P * P);
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        float2 *row = s + node * ROW;
#pragma unroll
        for (int i = 0; i < P; i += GROUP)
            inverse_leaves<LEVELS>(v + i);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < P; i++)
            row[(u + i / GROUP * GROUP) * SUB_ROW + i % GROUP] = v[i];
        __syncwarp();
#pragma unroll
        for (int e = 0; e < P; e++)
            v[e] = row[e * SUB_ROW + u];
        inverse_blocks<HELD>(v, table + INVERSE_A + u, GROUP);
        __syncwarp();
#pragma unroll
        for (int q = 0; q < P; q++)
            row[u + GROUP * q] = v[q];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        inverse_blocks<HELD>(v, table + INVERSE_B + t, T);
    }
};

#endif
