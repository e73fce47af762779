/* The kernel of module scale, and launchers that check for errors. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, TOO_MANY_THREADS = 2048 };

__global__ void scale(const float *a, float *b, float c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = c * a[i];
}

cudaError_t launch(const gc_lab_run *run, int block) {
    scale<<<ceil_div(run->size[0], block), block, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                    2.5f, run->size[0]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_scale_kernel) {
    return launch(run, BLOCK);
}

LAB_LAUNCHER(gck_scale_steps) {
    size_t bytes = (size_t)run->size[0] * sizeof(float);
    cudaError_t err = cudaMemcpyAsync(run->buffer[0], run->host[0], bytes, cudaMemcpyHostToDevice, stream(run));
    if (!err)
        err = launch(run, BLOCK); /* returns the error of a refused launch */
    if (!err)
        err = cudaStreamSynchronize(stream(run)); /* returns the error of a kernel that failed */
    return err ? err : cudaMemcpyAsync(run->host[1], run->buffer[1], bytes, cudaMemcpyDeviceToHost, stream(run));
}

LAB_LAUNCHER(gck_scale_error) {
    if (launch(run, TOO_MANY_THREADS) == cudaSuccess)
        return cudaErrorUnknown;
    return launch(run, BLOCK);
}
