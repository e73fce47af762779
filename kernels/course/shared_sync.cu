/* Write, wait - or not - and read what another warp wrote; the outcomes are counted over LAUNCHES launches. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 1024, LAUNCHES = 20 };

template <bool WAITS> __global__ void __launch_bounds__(BLOCK) exchange(int *out, int *counts) {
    __shared__ volatile int place[BLOCK];
    int t = threadIdx.x, mine = blockIdx.x * BLOCK + t + 1, wanted = blockIdx.x * BLOCK + BLOCK - t;
    place[t] = 0;
    __syncthreads();
    place[t] = mine;
    if (WAITS)
        __syncthreads();
    int got = place[BLOCK - 1 - t];
    out[(int64_t)blockIdx.x * BLOCK + t] = got;
    atomicAdd(counts + (got == wanted ? 0 : got == 0 ? 1 : 2), 1);
}

template <bool WAITS> int launch(const gc_lab_run *run) {
    cudaError_t failed = cudaMemsetAsync(run->buffer[1], 0, 3 * sizeof(int), stream(run));
    for (int i = 0; !failed && i < LAUNCHES; i++) {
        exchange<WAITS><<<(unsigned)run->size[0], BLOCK, 0, stream(run)>>>(buffer<int>(run, 0), buffer<int>(run, 1));
        failed = cudaGetLastError();
    }
    return failed;
}

} // namespace

LAB_LAUNCHER(gck_shared_waits) {
    return launch<true>(run);
}

LAB_LAUNCHER(gck_shared_races) {
    return launch<false>(run);
}
