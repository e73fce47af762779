/* What overlap-save in one kernel and in three share. */
#ifndef GC_KERNELS_OVERLAP_SAVE_CUH
#define GC_KERNELS_OVERLAP_SAVE_CUH

#include "../device/tree.cuh"
#include "matrix.cuh"

/* Two real blocks as one complex signal: v[j] = place t + T j. */
template <int P, int T>
__device__ __forceinline__ void load_pair(float2 *v, const float *__restrict__ a, const float *__restrict__ b, int t) {
#pragma unroll
    for (int j = 0; j < P; j++)
        v[j] = make_float2(__ldg(a + t + j * T), __ldg(b + t + j * T));
}

/* The last hop = N - before places of both blocks. */
template <int P, int T>
__device__ __forceinline__ void store_pair(const float2 *v, float *a, float *b, int before, int t) {
#pragma unroll
    for (int j = 0; j < P; j++) {
        int n = t + j * T - before;
        if (n >= 0) {
            a[n] = v[j].x;
            b[n] = v[j].y;
        }
    }
}

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

/* More than 48 KB of shared memory must be asked for, once a kernel and device; asking again costs next to nothing. */
template <typename Kernel> cudaError_t allow_shared(Kernel kernel, int bytes) {
    if (bytes <= 48 * 1024)
        return cudaSuccess;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

inline cudaError_t count_multiprocessors(int *count) {
    int device = 0;
    cudaError_t failed = cudaGetDevice(&device);
    return failed ? failed : cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

/* Transforms longer than one block's shared memory (long_overlap_save.cu). */
gck_transform_size gck_long_size(int64_t points);
void gck_long_turns(int64_t points, float2 *turns);
cudaError_t gck_long_spectra(int64_t points, const float *taps, int planes, int64_t count, const float2 *turns,
                             float2 *scratch, float2 *spectra, cudaStream_t stream);
cudaError_t gck_long_convolve(const gck_matrix *matrix, int64_t points, int64_t hop, int64_t pairs, const float2 *turns,
                              const float2 *spectra, float2 *scratch, cudaStream_t stream);

#endif
