/* b[i] = c a[i], and errors looked for. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, TOO_MANY = 2048 };

__global__ void scale(const float *a, float *b, float c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        b[i] = c * a[i];
}

cudaError_t launch(const gc_lab_run *run, int block) {
    scale<<<pieces(run->size[0], block), block, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                                  2.5f, run->size[0]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_scale_kernel) {
    return launch(run, BLOCK);
}

LAB_LAUNCHER(gck_scale_steps) {
    size_t bytes = (size_t)run->size[0] * sizeof(float);
    cudaError_t failed = cudaMemcpyAsync(run->buffer[0], run->host[0], bytes, cudaMemcpyHostToDevice, stream(run));
    if (!failed)
        failed = launch(run, BLOCK); /* a refused launch shows here */
    if (!failed)
        failed = cudaStreamSynchronize(stream(run)); /* a fault of the running kernel shows here */
    return failed ? failed : cudaMemcpyAsync(run->host[1], run->buffer[1], bytes, cudaMemcpyDeviceToHost, stream(run));
}

LAB_LAUNCHER(gck_scale_caught) {
    if (launch(run, TOO_MANY) == cudaSuccess)
        return cudaErrorUnknown;
    return launch(run, BLOCK);
}
