/* What overlap-save in one kernel and in three share. */
#ifndef GC_KERNELS_OVERLAP_SAVE_CUH
#define GC_KERNELS_OVERLAP_SAVE_CUH

#include "kernels/device/right_angle.cuh"
#include "launch.cuh"
#include "matrix.cuh"

/* The same pointer, but the compiler no longer knows it: what is read through it is read here and now, from the cache,
 * neither kept in registers since an earlier use nor fetched long before. */
__device__ __forceinline__ const float2 *fresh(const float2 *p) {
    asm volatile("" : "+l"(p));
    return p;
}

/* If `wanted`, without a branch, which would stand in the way of the loads around it. bytes: a multiple of 16, as is
 * the address. Only Hopper and later can; the others do without. */
__device__ __forceinline__ void call_into_cache(const float *from, int bytes, bool wanted) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p cp.async.bulk.prefetch.L2.global [%0], %1; }" ::"l"(from),
                 "r"(bytes), "r"((int)wanted));
#else
    (void)from;
    (void)bytes;
    (void)wanted;
#endif
}

/* Transforms longer than one block's shared memory (long_overlap_save.cu). */
gck_transform_size gck_long_size(int64_t points);
void gck_long_turns(int64_t points, float2 *turns);
cudaError_t gck_long_spectra(int64_t points, const float *taps, int planes, int64_t count, const float2 *turns,
                             float2 *scratch, float2 *spectra, cudaStream_t stream);
cudaError_t gck_long_convolve(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t blocks,
                              const float2 *turns, const float2 *spectra, float2 *scratch, cudaStream_t stream);

#endif
