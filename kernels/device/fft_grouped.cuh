/*
 * Complex FFT of 1024 G points, G = 4, 8 or 16, by 32 G threads with 32 points each; polynomials modulo x^N - i and the
 * butterflies of fft_fma.cuh. For convolution: the spectrum stays in the order in which threads hold it.
 *
 *      5 levels    thread t holds indices t + 32 G j            then one exchange between all threads
 *      5 levels    G threads share a node of 32 G points        then one exchange within those G
 *      log2 G      a thread holds the nodes u, u + G, ... of its 32 whole
 *
 * and back in the opposite order. Shared memory: a row for each of 32 nodes. The padding of a row keeps the accesses of
 * half a warp free of bank conflicts in every step.
 */
#ifndef GC_KERNELS_FFT_GROUPED_CUH
#define GC_KERNELS_FFT_GROUPED_CUH

#include "fft_fma.cuh"

/* LEVELS: log2 of G. forward and inverse each have a barrier before they read what other warps wrote; the caller adds
 * one between the end of a transform and the start of the next. */
template <int LEVELS> struct grouped_fft {
    static const int GROUP = 1 << LEVELS, P = 32, T = 32 * GROUP, N = P * T;
    static const int SUB_ROW = GROUP + 1, ROW = P * SUB_ROW + (GROUP < 16 ? GROUP : 0);
    static const int shared = P * ROW; /* float2 */
    /* Offsets of the twiddle tables of the four table-driven steps, and their total size. */
    static const int FORWARD_A = 0, FORWARD_B = FORWARD_A + 32 * 16, INVERSE_A = FORWARD_B + 1024 * GROUP / 2,
                     INVERSE_B = INVERSE_A + GROUP * 16, twiddles = INVERSE_B + T * 16;

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        float2 *row = s + node * ROW;
        forward_root<5, true>(v);
#pragma unroll
        for (int j = 0; j < P; j++)
            s[j * ROW + t] = v[j];
        __syncthreads();
#pragma unroll
        for (int q = 0; q < P; q++)
            v[q] = row[u + GROUP * q];
        forward_node<5>(v, table + FORWARD_A + node, 32);
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
            forward_node<LEVELS>(v + i, table + FORWARD_B + node * P + u + i, 1024);
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
        inverse_blocks<5>(v, table + INVERSE_A + u, GROUP);
        __syncwarp();
#pragma unroll
        for (int q = 0; q < P; q++)
            row[u + GROUP * q] = v[q];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        inverse_blocks<5>(v, table + INVERSE_B + t, T);
    }
};

#endif
