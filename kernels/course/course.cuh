/* Helpers for the launchers of all modules: typed access to the buffers and streams of a run, grid sizes, and the
 * resources of a compiled kernel. */
#ifndef GC_KERNELS_COURSE_CUH
#define GC_KERNELS_COURSE_CUH

#include "gpulab/lab.h"

#include <cuda_runtime.h>

namespace course {

static inline cudaStream_t stream(const gc_lab_run *run, int index = 0) {
    return (cudaStream_t)run->stream[index];
}

template <typename T> T *buffer(const gc_lab_run *run, int index) {
    return static_cast<T *>(run->buffer[index]);
}

/* Returns n / divisor, rounded up: the number of blocks in a grid, which CUDA counts in 32 bits. */
static inline unsigned ceil_div(int64_t n, int64_t divisor) {
    return (unsigned)((n + divisor - 1) / divisor);
}

/* Fills *facts with the registers, local and shared memory of a kernel and with the number of its blocks that fit on
 * one multiprocessor, for blocks of `threads` threads with `dynamic_shared` bytes of dynamic shared memory. Returns a
 * cudaError_t as int. */
template <typename Kernel> int kernel_facts(Kernel kernel, int threads, size_t dynamic_shared, gc_lab_facts *facts) {
    cudaFuncAttributes attributes;
    int blocks = 0;
    cudaError_t err = cudaFuncGetAttributes(&attributes, kernel);
    if (!err)
        err = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared);
    *facts = {attributes.numRegs, (int)attributes.localSizeBytes, (int)(attributes.sharedSizeBytes + dynamic_shared),
              threads, blocks};
    return (int)err;
}

} // namespace course

#endif
