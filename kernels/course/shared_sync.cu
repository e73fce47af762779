/* The kernel of module shared-sync, with or without the barrier between write and read. A launcher runs it LAUNCHES
 * times and counts the outcomes of all reads. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 1024, LAUNCHES = 20 };

template <bool BARRIER> __global__ void __launch_bounds__(BLOCK) exchange(int *out, int *counts) {
    __shared__ volatile int slots[BLOCK];
    int t = threadIdx.x, written = blockIdx.x * BLOCK + t + 1, expected = blockIdx.x * BLOCK + BLOCK - t;
    slots[t] = 0;
    __syncthreads();
    slots[t] = written;
    if (BARRIER)
        __syncthreads();
    int value = slots[BLOCK - 1 - t];
    out[(int64_t)blockIdx.x * BLOCK + t] = value;
    /* counts[0]: the expected number, counts[1]: the zero before it, counts[2]: any other value */
    atomicAdd(counts + (value == expected ? 0 : value == 0 ? 1 : 2), 1);
}

template <bool BARRIER> int launch(const gc_lab_run *run) {
    cudaError_t err = cudaMemsetAsync(run->buffer[1], 0, 3 * sizeof(int), stream(run));
    for (int i = 0; !err && i < LAUNCHES; i++) {
        exchange<BARRIER><<<(unsigned)run->size[0], BLOCK, 0, stream(run)>>>(buffer<int>(run, 0), buffer<int>(run, 1));
        err = cudaGetLastError();
    }
    return err;
}

} // namespace

LAB_LAUNCHER(gck_shared_barrier) {
    return launch<true>(run);
}

LAB_LAUNCHER(gck_shared_race) {
    return launch<false>(run);
}
