/* Thread groups, memory layout of spectra, and the spectra of partitions for the kernels that use the radix-16 FFT
 * (fft_radix16.cuh). */
#ifndef GC_KERNELS_TRANSFORM_CUH
#define GC_KERNELS_TRANSFORM_CUH

#include "kernels/device/fft_radix16.cuh"
#include "launch.cuh"

#include <cmath>

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

/* Multiplies v[j], index n = t + j N / 16, by the twist e^(i pi n / 2 N), or by its conjugate if Inverse. */
template <int N, bool Inverse> __device__ __forceinline__ void twist(float2 *v, int t) {
    float2 base;
    sincospif((float)t * (0.5f / N), &base.y, &base.x);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        float2 step; /* e^(i pi j / 32): a compile-time constant */
        step.x = cosf(0.09817477042468103f * (float)j);
        step.y = sinf(0.09817477042468103f * (float)j);
        float2 w = mul(base, step);
        v[j] = Inverse ? mul_conj(v[j], w) : mul(v[j], w);
    }
}

/* Spectra of the partitions of responses of `count` taps, one per group of threads, scaled by 1 / N: of N taps each
 * from first_tap on, twisted, or of N / 2 taps each. */
template <int N, bool Twisted>
__global__ void __launch_bounds__(layout<N>::block)
    partition_spectra(const float *__restrict__ taps, int64_t count, int64_t first_tap, int partitions,
                      int64_t spectra_count, const float2 *__restrict__ table, float2 *spectra) {
    extern __shared__ float2 shared[];
    const int group = threadIdx.x / layout<N>::threads, t = threadIdx.x % layout<N>::threads;
    const int64_t index = (int64_t)blockIdx.x * layout<N>::groups + group;
    const int64_t spectrum = index < spectra_count ? index : spectra_count - 1;
    const int64_t first = first_tap + spectrum % partitions * (Twisted ? N : N / 2);
    const float *from = taps + spectrum / partitions * count;
    float2 v[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int64_t k = first + t + j * layout<N>::threads;
        v[j] = make_float2((Twisted || j < 8) && k < count ? from[k] * (1.0f / N) : 0.0f, 0.0f);
    }
    if (Twisted)
        twist<N, false>(v, t);
    fft_radix16_forward<N>(v, shared + group * fft_radix16<N>::shared, t, table);
    if (index < spectra_count)
        store_spectrum<N>(v, spectra + spectrum * N, t);
}

/* Queues partition_spectra for `partitions` partitions of each response. */
template <int N, bool Twisted>
cudaError_t launch_partition_spectra(const gck_responses &responses, int64_t first_tap, int partitions,
                                     const float2 *table, float2 *spectra, cudaStream_t stream) {
    typedef layout<N> l;
    const int64_t count = (int64_t)responses.planes * partitions;
    cudaError_t err = allow_shared(partition_spectra<N, Twisted>, l::bytes);
    if (err)
        return err;
    partition_spectra<N, Twisted><<<l::blocks(count), l::block, l::bytes, stream>>>(
        responses.taps, responses.taps_count, first_tap, partitions, count, table, spectra);
    return cudaGetLastError();
}

/* Writes the table of the transforms, exp(-2 pi i m / points), on the host, each computed in double precision and
 * rounded once. */
inline void write_roots(int64_t points, float2 *table) {
    const double pi = 3.14159265358979323846;
    for (int64_t m = 0; m < points; m++) {
        const double angle = -2 * pi * (double)m / (double)points;
        table[m] = make_float2((float)cos(angle), (float)sin(angle));
    }
}

#endif
