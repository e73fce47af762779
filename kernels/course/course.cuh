/* What the launchers of all modules share: typed views of a run, grid arithmetic, and what the compiler made of a
 * kernel. */
#ifndef GC_KERNELS_COURSE_CUH
#define GC_KERNELS_COURSE_CUH

#include "gpulab/lab.h"

#include <cuda_runtime.h>

namespace course {

static inline cudaStream_t stream(const gc_lab_run *run, int which = 0) {
    return (cudaStream_t)run->stream[which];
}

template <typename T> T *buffer(const gc_lab_run *run, int which) {
    return static_cast<T *>(run->buffer[which]);
}

/* How many pieces of `step` cover n; the grid of a launch, which counts in 32 bits. */
static inline unsigned pieces(int64_t n, int64_t step) {
    return (unsigned)((n + step - 1) / step);
}

/* Registers, memory and resident blocks of a kernel as it would be launched. */
template <typename Kernel> int facts_of(Kernel kernel, int threads, size_t dynamic, gc_lab_facts *facts) {
    cudaFuncAttributes a;
    int blocks = 0;
    cudaError_t failed = cudaFuncGetAttributes(&a, kernel);
    if (!failed)
        failed = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic);
    *facts = {a.numRegs, (int)a.localSizeBytes, (int)(a.sharedSizeBytes + dynamic), threads, blocks};
    return (int)failed;
}

} // namespace course

#endif
