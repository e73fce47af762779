/*
 * A transform of 16384 points in 64 KB of shared memory, and its exchanges. Thread t = GROUP node + u:
 *
 *      across    from indices t + 512 j to indices u + 16 q of the thread's node, between all threads
 *      within    from registers e (index u + 16 e of the node) to the leaves of the nodes u and u + 16, between the 16
 *                threads of a node, which are in one warp
 *      back_...  the opposite
 *
 * The shared memory is unused before `across` and after `back_across` only once all threads have passed a barrier.
 */
#ifndef GC_KERNELS_DENSE_EXCHANGE_CUH
#define GC_KERNELS_DENSE_EXCHANGE_CUH

#include "twiddles.h"

namespace {

enum { THREADS = 512, POINTS_PER_THREAD = 32, POINTS = THREADS * POINTS_PER_THREAD, GROUP = 16 };

/*
 * Floats, real parts first, then imaginary parts, in exactly 64 KB. There is no room for padding: bits of the index are
 * inverted instead. A row is the 512 floats of a node.
 *
 *      across    column c of row r is at c ^ 16 (r mod 2): two nodes of a warp read different halves of the banks
 *      within    element (e, u) is at 32 (e / 2) + ((16 (e mod 2) + u) ^ f(e) ^ 16 (node mod 2)), where
 *                f(e) = e / 2 mod 8 + 8 (e mod 2): for fixed e and for fixed u all 32 lanes have different banks
 */
struct split_exchange {
    enum { ROW = POINTS_PER_THREAD * GROUP, BYTES = POINTS_PER_THREAD * ROW * (int)sizeof(float) };

    template <bool Imaginary> static __device__ __forceinline__ float &part(float2 &v) {
        return Imaginary ? v.y : v.x;
    }

    /* Returns the element at byte `at`. */
    static __device__ __forceinline__ float &element(float *s, int at) {
        return *(float *)((char *)s + at);
    }

    /* Returns the same value. On compute capability 12.0 hides it from the compiler, which would keep the addresses of
     * one exchange in registers for the next one and spill others; elsewhere it would spill if they were hidden. */
    static __device__ __forceinline__ int recomputed(int at) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
        asm volatile("" : "+r"(at));
#endif
        return at;
    }

    /* Returns the byte of element (0, u) of the node; that of element (e, u) is
     * (first_column(t) ^ 4 flip(e)) + 128 (e / 2). */
    static __device__ __forceinline__ int first_column(int t) {
        int at = 4 * (t / GROUP * ROW + t % GROUP + t / GROUP % 2 * 16);
        return recomputed(at);
    }

    static __device__ __forceinline__ constexpr int flip(int e) {
        return (e / 2 % 8) + e % 2 * 24;
    }

    /* Returns the byte of element (u, 0) of the node; that of (u + 16 g, i) is (first_line(t) ^ 4 i) + 1024 g. */
    static __device__ __forceinline__ int first_line(int t) {
        const int u = t % GROUP;
        int at = 4 * (t / GROUP * ROW + u / 2 * 32 + (flip(u) ^ (t / GROUP % 2 * 16)));
        return recomputed(at);
    }

    template <bool Imaginary> static __device__ __forceinline__ void across_part(float2 *v, float *s, int t) {
        const int swap = t / GROUP % 2 * GROUP;
        float *row = s + t / GROUP * ROW + t % GROUP;
#pragma unroll
        for (int j = 0; j < POINTS_PER_THREAD; j++)
            s[j * ROW + (t ^ j % 2 * GROUP)] = part<Imaginary>(v[j]);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < POINTS_PER_THREAD; q++)
            part<Imaginary>(v[q]) = row[GROUP * q + (q % 2 ? -swap : swap)];
    }

    static __device__ __forceinline__ void across(float2 *v, float *s, int t) {
        across_part<false>(v, s, t);
        __syncthreads();
        across_part<true>(v, s, t);
    }

    template <bool Imaginary> static __device__ __forceinline__ void within_part(float2 *v, float *s, int t) {
        const int column = first_column(t), line = first_line(t);
        __syncwarp();
#pragma unroll
        for (int e = 0; e < POINTS_PER_THREAD; e++)
            element(s, (column ^ 4 * flip(e)) + 128 * (e / 2)) = part<Imaginary>(v[e]);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < POINTS_PER_THREAD; i++)
            part<Imaginary>(v[i]) = element(s, (line ^ 4 * (i % GROUP)) + 1024 * (i / GROUP));
    }

    static __device__ __forceinline__ void within(float2 *v, float *s, int t) {
        within_part<false>(v, s, t);
        within_part<true>(v, s, t);
    }

    template <bool Imaginary> static __device__ __forceinline__ void back_within_part(float2 *v, float *s, int t) {
        const int column = first_column(t), line = first_line(t);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < POINTS_PER_THREAD; i++)
            element(s, (line ^ 4 * (i % GROUP)) + 1024 * (i / GROUP)) = part<Imaginary>(v[i]);
        __syncwarp();
#pragma unroll
        for (int e = 0; e < POINTS_PER_THREAD; e++)
            part<Imaginary>(v[e]) = element(s, (column ^ 4 * flip(e)) + 128 * (e / 2));
    }

    static __device__ __forceinline__ void back_within(float2 *v, float *s, int t) {
        back_within_part<false>(v, s, t);
        back_within_part<true>(v, s, t);
    }

    template <bool Imaginary> static __device__ __forceinline__ void back_across_part(float2 *v, float *s, int t) {
        const int swap = t / GROUP % 2 * GROUP;
        float *row = s + t / GROUP * ROW + t % GROUP;
#pragma unroll
        for (int q = 0; q < POINTS_PER_THREAD; q++)
            row[GROUP * q + (q % 2 ? -swap : swap)] = part<Imaginary>(v[q]);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < POINTS_PER_THREAD; j++)
            part<Imaginary>(v[j]) = s[j * ROW + (t ^ j % 2 * GROUP)];
    }

    static __device__ __forceinline__ void back_across(float2 *v, float *s, int t) {
        __syncwarp();
        back_across_part<false>(v, s, t);
        __syncthreads();
        back_across_part<true>(v, s, t);
    }
};

/* 16384 points with exchanges in 64 KB, and the offsets of the tables of the four steps that need one. */
struct split_fft {
    static const int P = POINTS_PER_THREAD, T = THREADS, N = POINTS;
    static const int shared = split_exchange::BYTES / (int)sizeof(float2);
    static const int FORWARD_A = 0, FORWARD_B = FORWARD_A + P * P / 2, INVERSE_A = FORWARD_B + P * P * GROUP / 2,
                     INVERSE_B = INVERSE_A + GROUP * P / 2, twiddles = INVERSE_B + T * P / 2;

    static void write_twiddles(float2 *to) {
        write_forward_twiddles(to + FORWARD_A, 5, 5, 0.25);
        write_forward_twiddles(to + FORWARD_B, 10, 4, 0.25);
        write_inverse_twiddles(to + INVERSE_A, 5, GROUP);
        write_inverse_twiddles(to + INVERSE_B, 5, T);
    }

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        forward_root<5, true>(v);
        split_exchange::across(v, (float *)s, t);
        forward_node<5>(v, table + FORWARD_A + node, 32);
        split_exchange::within(v, (float *)s, t);
        forward_node<4>(v, table + FORWARD_B + node * P + u, 1024);
        forward_node<4>(v + GROUP, table + FORWARD_B + node * P + u + GROUP, 1024);
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        inverse_leaves<4>(v);
        inverse_leaves<4>(v + GROUP);
        split_exchange::back_within(v, (float *)s, t);
        inverse_blocks<5>(v, table + INVERSE_A + t % GROUP, GROUP);
        split_exchange::back_across(v, (float *)s, t);
        inverse_blocks<5>(v, table + INVERSE_B + t, T);
    }
};

} // namespace

#endif
