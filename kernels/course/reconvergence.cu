/* A region for one thread of a warp at a time, four ways. A block is a warp. */
#include "course.cuh"

using namespace course;

namespace {

/* What a thread does in the region: it takes the next place. Read and write are apart, so that two threads inside would
 * take the same; each is atomic, because racecheck cannot see that a lock orders them. */
__device__ void enter(int *inside, int *order) {
    int place = atomicAdd(inside, 0);
    order[32 * blockIdx.x + place] = (int)threadIdx.x;
    atomicExch(inside, place + 1);
}

__global__ void in_turn(int *count, int *order) {
    __shared__ int inside;
    if (threadIdx.x == 0)
        inside = 0;
    __syncwarp();
    for (int lane = 0; lane < 32; lane++) {
        if ((int)threadIdx.x == lane)
            enter(&inside, order);
        __syncwarp();
    }
    if (threadIdx.x == 0)
        count[blockIdx.x] = inside;
}

__global__ void released_inside(int *count, int *order) {
    __shared__ int inside, lock;
    if (threadIdx.x == 0)
        inside = lock = 0;
    __syncwarp();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            enter(&inside, order);
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncwarp();
    if (threadIdx.x == 0)
        count[blockIdx.x] = inside;
}

__global__ void spinning(int *count, int *order) {
    __shared__ int inside, lock;
    if (threadIdx.x == 0)
        inside = lock = 0;
    __syncwarp();
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    enter(&inside, order);
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncwarp();
    if (threadIdx.x == 0)
        count[blockIdx.x] = inside;
}

__global__ void together(int *count, int *order) {
    __syncwarp();
    unsigned here = __ballot_sync(0xffffffffu, 1);
    order[32 * blockIdx.x + threadIdx.x] = (int)threadIdx.x;
    if (threadIdx.x == 0)
        count[blockIdx.x] = __popc(here);
}

int launch(void (*kernel)(int *, int *), const gc_lab_run *run) {
    kernel<<<(unsigned)run->size[0], 32, 0, stream(run)>>>(buffer<int>(run, 0), buffer<int>(run, 1));
    return (int)cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_region_in_turn) {
    return launch(in_turn, run);
}

LAB_LAUNCHER(gck_region_released_inside) {
    return launch(released_inside, run);
}

LAB_LAUNCHER(gck_region_spinning) {
    return run->capability < 70 ? LAB_CANNOT : launch(spinning, run);
}

LAB_LAUNCHER(gck_region_together) {
    return launch(together, run);
}
