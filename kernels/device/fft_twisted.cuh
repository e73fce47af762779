/*
 * Complex FFT of 1024 G points, G = 2, 4, 8 or 16, by 32 G threads with 32 points each, for convolution: polynomials
 * modulo x^N - i and the butterflies of fft_fma.cuh, with small tables. The spectrum stays in the order in which
 * threads hold it.
 *
 * The nodes of the second and third step have roots of their own, whose twiddles would be 12 N bytes of tables, too
 * many for the first-level cache beside the data. Therefore, after the first step, thread t multiplies its index of row
 * J by e^(2 pi i v(J) t / T), T = 32 G, v(J) that of the row's root x^T - e^(2 pi i v(J)). A row is then a polynomial
 * modulo x^T - 1, the same transform for all rows:
 *
 *      5 levels    thread t holds indices t + T j: constants       then twist, then one exchange between all threads
 *      5 levels    G threads share a row of T points: constants    then one exchange within those G
 *      log2 G      a thread holds the nodes u, u + G, ... of its 32 whole: a table of 16 G twiddles
 *
 * and back in the opposite order. The inverse leaves row j multiplied by e^(i pi j / 64), the same for all threads;
 * `forward` and `inverse` are exact with that factor removed by untwist_rows. Shared memory: a row for each of 32
 * nodes; its padding keeps the accesses of half a warp free of bank conflicts in every step.
 */
#ifndef GC_KERNELS_FFT_TWISTED_CUH
#define GC_KERNELS_FFT_TWISTED_CUH

#include "fft_fma.cuh"
#include "right_angle.cuh"

/* Loads from memory at this place: the compiler neither reuses an earlier load nor moves this one. */
__device__ __forceinline__ float2 load_here(const float2 *from) {
    float2 x;
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "l"(from) : "memory");
    return x;
}

/* Removes the factor e^(i pi j / 2 P) of row j. */
template <int P> __device__ __forceinline__ void untwist_rows(float2 *v) {
    unroll<P>([v](auto index) {
        constexpr int j = decltype(index)::value, k = j * (64 / P);
        v[j] = rotate(v[j], -angle<k>::tan_of_half, -angle<k>::sin);
    });
}

/* LEVELS: log2 of G. forward and inverse each have a barrier before they read what other warps wrote; the caller adds
 * one between the end of a transform and the start of the next. */
template <int LEVELS> struct twisted_fft {
    static const int GROUP = 1 << LEVELS, P = 32, T = P * GROUP, N = P * T;
    static const int SUB_ROW = GROUP + 1, ROW = P * SUB_ROW + (GROUP < 16 ? GROUP : 0);
    static const int shared = P * ROW; /* float2 */
    /* Offsets of the tables: factors of the twist [bit of J][t], the factor of J = 0 [t], twiddles of the last step
     * forward and of the second step back; and their total size. */
    static const int FACTORS = 0, BASE = FACTORS + 5 * T, FORWARD = BASE + T, INVERSE = FORWARD + 16 * GROUP,
                     twiddles = INVERSE + 16 * GROUP;

    /* load_here: the products of the factors would otherwise be kept from the first twist to the second one. */
    template <bool Conjugate> static __device__ __forceinline__ void twist(float2 *v, int t, const float2 *table) {
        float2 factor[5];
#pragma unroll
        for (int i = 0; i < 5; i++)
            factor[i] = load_here(table + FACTORS + i * T + t);
        twiddle_leaves<5, Conjugate>(v, load_here(table + BASE + t), factor);
    }

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        float2 *row = s + node * ROW;
        forward_root<5, true>(v);
        twist<false>(v, t, table);
#pragma unroll
        for (int j = 0; j < P; j++)
            s[j * ROW + t] = v[j];
        __syncthreads();
#pragma unroll
        for (int q = 0; q < P; q++)
            v[q] = row[u + GROUP * q];
        forward_root<5>(v);
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
            forward_node<LEVELS>(v + i, table + FORWARD + u + i, 32);
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
        inverse_blocks<5>(v, table + INVERSE + u, GROUP);
        __syncwarp();
#pragma unroll
        for (int q = 0; q < P; q++)
            row[u + GROUP * q] = v[q];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < P; j++)
            v[j] = s[j * ROW + t];
        twist<true>(v, t, table);
        inverse_leaves<5>(v);
    }
};

#endif
