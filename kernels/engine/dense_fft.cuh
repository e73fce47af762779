/* The transforms of dense matrices by size: 1024, 4096, 8192 and 16384 complex points on the chip. */
#ifndef GC_KERNELS_DENSE_FFT_CUH
#define GC_KERNELS_DENSE_FFT_CUH

#include "dense_exchange.cuh"
#include "kernels/device/fft_grouped.cuh"

#include <type_traits>

namespace {

/* 1024 points in a warp, with the interface of grouped_fft. */
struct warp_fft : fft_fma<5, 5, true> {
    typedef fft_fma<5, 5, true> base;
    static const int twiddles = base::forward_twiddles + base::inverse_twiddles;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table + base::forward_twiddles);
    }
};

/* 16384 points with the tables of grouped_fft and exchanges in 64 KB. */
struct split_fft {
    typedef grouped_fft<4> base;
    static const int P = base::P, T = base::T, N = base::N, twiddles = base::twiddles;
    static const int shared = split_exchange::BYTES / (int)sizeof(float2);
    static_assert(P == POINTS_PER_THREAD && T == THREADS && GROUP == base::GROUP, "the exchanges are for this size");

    static __device__ __forceinline__ void forward(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        const int node = t / GROUP, u = t % GROUP;
        forward_root<5, true>(v);
        split_exchange::across(v, (float *)s, t);
        forward_node<5>(v, table + base::FORWARD_A + node, 32);
        split_exchange::within(v, (float *)s, t);
        forward_node<4>(v, table + base::FORWARD_B + node * P + u, 1024);
        forward_node<4>(v + GROUP, table + base::FORWARD_B + node * P + u + GROUP, 1024);
    }

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        inverse_leaves<4>(v);
        inverse_leaves<4>(v + GROUP);
        split_exchange::back_within(v, (float *)s, t);
        inverse_blocks<5>(v, table + base::INVERSE_A + t % GROUP, GROUP);
        split_exchange::back_across(v, (float *)s, t);
        inverse_blocks<5>(v, table + base::INVERSE_B + t, T);
    }
};

/* The transform of size 0 .. 3, and the blocks per multiprocessor to compile for: 128 registers for each thread. */
template <int Size> struct config {
    typedef std::conditional_t<Size == 0, warp_fft,
                               std::conditional_t<Size == 3, split_fft, grouped_fft<Size == 1 ? 2 : 3>>>
        transform;
    static const int resident = Size == 0 ? 16 : 512 / transform::T;
    static const int bytes = transform::shared * (int)sizeof(float2);
};

} // namespace

#endif
