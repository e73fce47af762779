/* Thread groups and memory layout of spectra for the kernels that use the radix-16 FFT (fft_radix16.cuh). */
#ifndef GC_KERNELS_TRANSFORM_CUH
#define GC_KERNELS_TRANSFORM_CUH

#include "kernels/device/fft_radix16.cuh"
#include "launch.cuh"
#include "matrix.cuh"

/* Small transforms share a block, so that a block has at least 128 threads. */
template <int N> struct layout {
    static const int threads = fft_radix16<N>::threads;
    static const int groups = threads < 128 ? 128 / threads : 1;
    static const int block = threads * groups;
    static const int bytes = groups * fft_radix16<N>::shared * (int)sizeof(float2);

    /* Returns the blocks that `transforms` transforms take. */
    static unsigned blocks(int64_t transforms) {
        return (unsigned)((transforms + groups - 1) / groups);
    }
};

/* Loads a spectrum. In memory two registers of a thread are adjacent, so that an access is 16 bytes and a warp reads
 * whole lines. */
template <int N> __device__ __forceinline__ void load_spectrum(float2 *v, const float2 *from, int t) {
#pragma unroll
    for (int j = 0; j < 16; j += 2) {
        float4 x = __ldg((const float4 *)(from + (j / 2) * 2 * fft_radix16<N>::threads + 2 * t));
        v[j] = make_float2(x.x, x.y);
        v[j + 1] = make_float2(x.z, x.w);
    }
}

/* Stores a spectrum in the layout of load_spectrum. */
template <int N> __device__ __forceinline__ void store_spectrum(const float2 *v, float2 *to, int t) {
#pragma unroll
    for (int j = 0; j < 16; j += 2)
        *(float4 *)(to + (j / 2) * 2 * fft_radix16<N>::threads + 2 * t) =
            make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

#endif
