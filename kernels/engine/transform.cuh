/* What the kernels around a transform share: how threads form groups, and how spectra lie in memory. */
#ifndef GC_KERNELS_TRANSFORM_CUH
#define GC_KERNELS_TRANSFORM_CUH

#include "kernels/device/fft.cuh"
#include "overlap_save.cuh"

/* Small transforms go several to a block, so that a block has at least 128 threads. */
template <int N> struct layout {
    static const int threads = fft<N>::threads;
    static const int groups = threads < 128 ? 128 / threads : 1;
    static const int block = threads * groups;
    static const int bytes = groups * fft<N>::shared * (int)sizeof(float2);
};

/* A spectrum lies in memory as its registers do, two of a thread side by side: 16-byte accesses, whole lines a warp. */
template <int N> __device__ __forceinline__ void load_spectrum(float2 *v, const float2 *from, int t) {
#pragma unroll
    for (int j = 0; j < 16; j += 2) {
        float4 x = __ldg((const float4 *)(from + (j / 2) * 2 * fft<N>::threads + 2 * t));
        v[j] = make_float2(x.x, x.y);
        v[j + 1] = make_float2(x.z, x.w);
    }
}

template <int N> __device__ __forceinline__ void store_spectrum(const float2 *v, float2 *to, int t) {
#pragma unroll
    for (int j = 0; j < 16; j += 2)
        *(float4 *)(to + (j / 2) * 2 * fft<N>::threads + 2 * t) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

/* Calls f<N>() for a number of points known when the program runs. */
#define GCK_FOR_POINTS(points, call)                                                                                   \
    switch (points) {                                                                                                  \
    case 512:                                                                                                          \
        return call(512);                                                                                              \
    case 1024:                                                                                                         \
        return call(1024);                                                                                             \
    case 2048:                                                                                                         \
        return call(2048);                                                                                             \
    case 4096:                                                                                                         \
        return call(4096);                                                                                             \
    case 8192:                                                                                                         \
        return call(8192);                                                                                             \
    default:                                                                                                           \
        return cudaErrorInvalidValue;                                                                                  \
    }

#endif
