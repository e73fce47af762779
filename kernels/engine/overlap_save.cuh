/* Declarations shared by overlap-save in one kernel (overlap_save.cu) and in three kernels (overlap_save_3pass.cu). */
#ifndef GC_KERNELS_OVERLAP_SAVE_CUH
#define GC_KERNELS_OVERLAP_SAVE_CUH

#include "kernels/device/right_angle.cuh"
#include "launch.cuh"
#include "routes.cuh"
#include "twiddles.h"

/* Loads as load_right_angle does, but not through the read-only cache: a kernel that is launched early (launch.cuh) is
 * resident while the previous one still writes the samples. */
template <int P, int T> __device__ __forceinline__ void load_fresh_right_angle(float2 *v, const float *x, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(x[t + j * T], x[t + j * T + P * T]);
}

/* Stores a spectrum; in memory two registers of a thread are adjacent. to: the thread's place, 2 t elements from the
 * start of the spectrum. */
template <int P, int T> __device__ __forceinline__ void keep(const float2 *v, float2 *to) {
#pragma unroll
    for (int j = 0; j < P; j += 2)
        *(float4 *)(to + j * T) = make_float4(v[j].x, v[j].y, v[j + 1].x, v[j + 1].y);
}

/* Computes to = v h for a spectrum that `keep` has stored; h: the thread's place. */
template <int P, int T>
__device__ __forceinline__ void multiply_spectrum(float2 *to, const float2 *v, const float2 *h) {
#pragma unroll
    for (int j = 0; j < P; j += 2) {
        const float4 w = __ldg((const float4 *)(h + j * T));
        to[j] = mul(v[j], make_float2(w.x, w.y));
        to[j + 1] = mul(v[j + 1], make_float2(w.z, w.w));
    }
}

/* The complete transform of 2^(A + B) points. The table contains the forward twiddles, the inverse ones, and the angles
 * that untwist. */
template <int A, int B> struct full_fft : fft_fma<A, B, true> {
    typedef fft_fma<A, B, true> base;
    static const int twiddles = base::forward_twiddles + base::inverse_twiddles + base::T;

    static __device__ __forceinline__ void inverse(float2 *v, float2 *s, int t, const float2 *__restrict__ table) {
        base::inverse(v, s, t, table + base::forward_twiddles);
    }

    static void write_twiddles(float2 *to) {
        write_untwist_angles(write_inverse_twiddles(write_forward_twiddles(to, A, B, 0.25), A, base::T), base::T,
                             base::N);
    }
};

/* Returns the same pointer and hides its value from the compiler, so that a read through it happens here: it is
 * neither replaced by a register that holds an earlier read nor moved forward. */
__device__ __forceinline__ const float2 *opaque_pointer(const float2 *p) {
    asm volatile("" : "+l"(p));
    return p;
}

/* Prefetches `bytes` from `from` into the second-level cache, if `enabled`. Both are multiples of 16. The condition is
 * a predicate, not a branch, which would keep the compiler from moving loads across it. Does nothing before Hopper. */
__device__ __forceinline__ void prefetch_l2(const float *from, int bytes, bool enabled) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p cp.async.bulk.prefetch.L2.global [%0], %1; }" ::"l"(from),
                 "r"(bytes), "r"((int)enabled));
#else
    (void)from;
    (void)bytes;
    (void)enabled;
#endif
}

/* The functions for one transform size; see gck_overlap_save_* in kernels.h. `points` is the number of real points. */
struct overlap_save_row {
    int64_t points;
    gck_overlap_save_sizes (*sizes)();
    void (*write_twiddles)(float2 *twiddles);
    cudaError_t (*spectra)(const gck_responses &responses, const gck_overlap_save_memory &memory, cudaStream_t stream);
    cudaError_t (*convolve)(const gck_routes *routes, int64_t hop, int64_t blocks,
                            const gck_overlap_save_memory &memory, cudaStream_t stream);
    bool has_sums; /* outputs may have several routes */
};

/* Returns whether so many outputs in a row have the same input that gck_overlap_save_fan is faster. */
bool gck_overlap_save_fans(const gck_routes *routes);

/* The convolution of 2048 points for one route per output (overlap_save_fan.cu); same tables and spectra. */
cudaError_t gck_overlap_save_fan(const gck_routes *routes, int64_t hop, int64_t blocks,
                                 const gck_overlap_save_memory &memory, cudaStream_t stream);

/* Returns the functions of this size in three kernels; NULL if there is none. */
const overlap_save_row *gck_overlap_save_3pass_find(int64_t points);

#endif
