/* The kernels of module reconvergence: four ways to let one thread of a warp at a time into a critical section. A block
 * has one warp. */
#include "course.cuh"

using namespace course;

namespace {

/* The critical section: notes the thread at the next position of the order. The read and the write of `entered` are two
 * operations, so that two threads inside would get the same position. Both are atomic only because racecheck does not
 * recognise that a lock orders them. */
__device__ void critical_section(int *entered, int *order) {
    int position = atomicAdd(entered, 0);
    order[32 * blockIdx.x + position] = (int)threadIdx.x;
    atomicExch(entered, position + 1);
}

__global__ void in_turn(int *count, int *order) {
    __shared__ int entered;
    if (threadIdx.x == 0)
        entered = 0;
    __syncwarp();
    for (int lane = 0; lane < 32; lane++) {
        if ((int)threadIdx.x == lane)
            critical_section(&entered, order);
        __syncwarp();
    }
    if (threadIdx.x == 0)
        count[blockIdx.x] = entered;
}

__global__ void released_inside(int *count, int *order) {
    __shared__ int entered, lock;
    if (threadIdx.x == 0)
        entered = lock = 0;
    __syncwarp();
    for (bool done = false; !done;) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            critical_section(&entered, order);
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    }
    __syncwarp();
    if (threadIdx.x == 0)
        count[blockIdx.x] = entered;
}

__global__ void spinning(int *count, int *order) {
    __shared__ int entered, lock;
    if (threadIdx.x == 0)
        entered = lock = 0;
    __syncwarp();
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    critical_section(&entered, order);
    __threadfence_block();
    atomicExch(&lock, 0);
    __syncwarp();
    if (threadIdx.x == 0)
        count[blockIdx.x] = entered;
}

__global__ void vote(int *count, int *order) {
    __syncwarp();
    unsigned active = __ballot_sync(0xffffffffu, 1);
    order[32 * blockIdx.x + threadIdx.x] = (int)threadIdx.x;
    if (threadIdx.x == 0)
        count[blockIdx.x] = __popc(active);
}

int launch(void (*kernel)(int *, int *), const gc_lab_run *run) {
    kernel<<<(unsigned)run->size[0], 32, 0, stream(run)>>>(buffer<int>(run, 0), buffer<int>(run, 1));
    return (int)cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_critical_in_turn) {
    return launch(in_turn, run);
}

LAB_LAUNCHER(gck_critical_released_inside) {
    return launch(released_inside, run);
}

LAB_LAUNCHER(gck_critical_spinning) {
    return run->capability < 70 ? LAB_CANNOT : launch(spinning, run);
}

LAB_LAUNCHER(gck_critical_vote) {
    return launch(vote, run);
}
