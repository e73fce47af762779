/*
 * Whole transforms on the chip for rows: their sizes and the steps that chip.cu and chip_gradient.cu share.
 *
 * N complex points represent 2 N real ones (right_angle.cuh): 128 to 512 points in a part of a warp, which computes
 * several rows, 1024 in a warp (fft_fma.cuh), 2048 to 16384 in a block (fft_twisted.cuh). The blocks are persistent:
 * block b takes the items b, b + blocks, ... What a thread keeps in `scratch` it alone reads again: the values are in
 * the order in which the threads hold them, and stay in the second-level cache.
 */
#ifndef GC_KERNELS_ROWS_CHIP_CUH
#define GC_KERNELS_ROWS_CHIP_CUH

#include "gates.cuh"
#include "kernels/engine/twiddles.h"

#include "kernels/device/fft_twisted.cuh"

/* 2^(A + B) points in a warp or a part of one, with the interface of twisted_fft; `inverse` removes the twist. */
template <int A, int B> struct warp_fft : fft_fma<A, B, true> {
    typedef fft_fma<A, B, true> base;
    static const int twiddles = base::forward_twiddles + base::inverse_twiddles;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table + base::forward_twiddles);
        untwist<base::P>(v, untwist_angle<base::N>(t));
    }

    static void write_twiddles(float2 *to) {
        write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, base::T);
    }
};

/* A transform in a block, with the interface of warp_fft. */
template <int LEVELS> struct block_fft : twisted_fft<LEVELS> {
    typedef twisted_fft<LEVELS> base;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table);
        untwist_rows<base::P>(v);
    }

    static void write_twiddles(float2 *to) {
        write_twisted_tables<base, LEVELS>(to);
    }
};

/* The transforms by size. */
template <int Size> struct transform_of { typedef block_fft<Size - 3> type; };
template <> struct transform_of<0> { typedef warp_fft<4, 3> type; };
template <> struct transform_of<1> { typedef warp_fft<4, 4> type; };
template <> struct transform_of<2> { typedef warp_fft<5, 4> type; };
template <> struct transform_of<3> { typedef warp_fft<5, 5> type; };

/* A block has one transform, or 128 threads in groups with a transform each. Its blocks per multiprocessor to compile
 * for: 128 registers for each thread; in groups 168, of 16 points 80 or 96. */
template <int Size> struct config {
    typedef typename transform_of<Size>::type transform;
    static const int groups = transform::T < 32 ? 128 / transform::T : 1, threads = groups * transform::T;
    static const int resident = (groups == 1          ? 512
                                 : transform::P == 32 ? 384
                                 : transform::T == 8  ? 640
                                                      : 768) /
                                threads;
    /* float2 of a group; those of half a warp begin in different banks */
    static const int stride = transform::shared + (transform::T == 8 ? 8 : 0);
    static const int bytes = groups * stride * (int)sizeof(float2);
    /* Whether a convolution may leave the transforms of its rows. With fewer points their bytes take as long as a
     * transform; with more, one block fills a multiprocessor, and nothing hides them. */
    static const bool keeps = Size > 3 && Size < 7;
};

/* The blocks per multiprocessor to compile for; gates take more registers with 16 points in a thread. */
template <int Size, known_rows Known> __host__ __device__ constexpr int resident_of() {
    return config<Size>::resident - (Known == GATED && config<Size>::transform::P == 16 ? 1 : 0);
}

/* Whether the kernels of a size hold the addresses of a thread in registers over all segments. Elsewhere the compiler
 * runs out of them then and spills. */
template <int Size> __host__ __device__ constexpr bool holds_addresses() {
#if defined(__CUDA_ARCH__)
    return Size > 2 && (__CUDA_ARCH__ == 900 || (__CUDA_ARCH__ > 900 && Size > 3));
#else
    return true;
#endif
}

/* Returns the same number, which the compiler does not recognise: it computes what follows from it again where it is
 * needed, instead of keeping it in registers during a transform. */
__device__ __forceinline__ int hidden(int x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* Returns the number of the thread in its transform, hidden without `holds_addresses`. */
template <int Size> __device__ __forceinline__ int thread_of_segment() {
    const int t = config<Size>::groups > 1 ? threadIdx.x % config<Size>::transform::T : threadIdx.x;
    return holds_addresses<Size>() ? t : hidden(t);
}

/* Returns which of the transforms that a block computes at a time is that of the thread. */
template <int Size> __device__ __forceinline__ int group_of_thread() {
    return config<Size>::groups > 1 ? threadIdx.x / config<Size>::transform::T : 0;
}

/* Part `part` of `parts` of `count` steps: begin .. end - 1. The groups of a block take the same number of steps, begin
 * .. last - 1; in those from `end` on a group only waits. */
struct part_range {
    int begin, end, last;
};

template <int Size> __device__ __forceinline__ part_range range_of(int part, int count, int parts) {
    const int begin = (int)((int64_t)part * count / parts), end = (int)((int64_t)(part + 1) * count / parts);
    return {begin, end, config<Size>::groups > 1 ? begin + (count + parts - 1) / parts : end};
}

/* Returns a row of an array as its only row: a turn of a loop may then load a row of either of two arrays. The step
 * is 1. */
__device__ __forceinline__ gck_rows only_row(const gck_rows &rows, int64_t row) {
    const int bytes = rows.sample == GCK_F32 ? 4 : 2;
    return {(char *)rows.data + row_start(rows, row) * bytes, row_frames(rows, row), 0, 1, NULL, NULL, rows.sample};
}

/* Multiplies by the conjugate of a spectrum and adds `sum`, if it is not NULL. */
template <int P, int T> __device__ __forceinline__ void correlate(float2 *v, const float2 *x, const float2 *sum) {
#pragma unroll
    for (int j = 0; j < P; j += 2) {
        const float4 w = *(const float4 *)(x + j * T);
        v[j] = mul_conj(v[j], make_float2(w.x, w.y));
        v[j + 1] = mul_conj(v[j + 1], make_float2(w.z, w.w));
    }
    if (sum) {
#pragma unroll
        for (int j = 0; j < P; j += 2) {
            const float4 w = *(const float4 *)(sum + j * T);
            v[j] = add(v[j], make_float2(w.x, w.y));
            v[j + 1] = add(v[j + 1], make_float2(w.z, w.w));
        }
    }
}

/* Transforms a sum of spectra back. sum: at the thread's place. */
template <typename F>
__device__ __forceinline__ void finish_sum(float2 *v, float2 *s, const float2 *sum, const float2 *__restrict__ twiddles,
                                           int t) {
    load_kept<F::P, F::T>(v, sum);
    transform_barrier<F::T>();
    F::inverse(v, s, t, twiddles);
}

/* Loads kernels of a size, so that no launch has to. */
template <int Size, typename... Kernel> cudaError_t load_kernels(Kernel... kernels) {
    int device = 0;
    cudaError_t err = cudaGetDevice(&device);
    ((err = err ? err : load_kernel(kernels, config<Size>::bytes),
      err = err ? err : set_carveout(device, kernels, config<Size>::resident, config<Size>::bytes)),
     ...);
    return err;
}

#endif
