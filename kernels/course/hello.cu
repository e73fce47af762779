/* The kernel of module hello: each thread writes the index of its block and its own index. */
#include "course.cuh"

using namespace course;

static __global__ void hello(int *ids) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    ids[2 * i] = (int)blockIdx.x;
    ids[2 * i + 1] = (int)threadIdx.x;
}

LAB_LAUNCHER(gck_hello) {
    hello<<<(unsigned)run->size[0], (unsigned)run->size[1], 0, stream(run)>>>(buffer<int>(run, 0));
    return cudaGetLastError();
}
