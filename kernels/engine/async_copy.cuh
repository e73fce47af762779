/*
 * Copies from device memory to shared memory that a thread does not wait for, from architecture 80 on; before it they
 * are loads and stores. A thread sees what it has copied itself after waiting; the others need a barrier, too.
 */
#ifndef GC_KERNELS_ASYNC_COPY_CUH
#define GC_KERNELS_ASYNC_COPY_CUH

#include <cuda_runtime.h>

__device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Copies the first `bytes` of 16 bytes and sets the others to zero. Both places are aligned to 16 bytes; before
 * architecture 80 `bytes` is 0 or 16. */
__device__ __forceinline__ void copy_16(void *to, const void *from, int bytes) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
#else
    *(float4 *)to = bytes ? *(const float4 *)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#endif
}

/* Copies four bytes, or sets them to zero. */
__device__ __forceinline__ void copy_4(unsigned *to, const unsigned *from, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 4 : 0)
                 : "memory");
#else
    *to = valid ? *from : 0;
#endif
}

/* Ends a group of copies. */
__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most PENDING of the newest groups are incomplete. */
template <int PENDING> __device__ __forceinline__ void wait_for_groups() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* Waits for all copies of the thread, whether their group has ended or not. */
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif
