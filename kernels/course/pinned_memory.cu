/* The copies of pinned_memory.c, and the kernel that needs none. */
#include "course.cuh"

namespace {

__global__ void through(const float *from, float *to, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

size_t bytes_of(const gc_lab_run *run) {
    return sizeof(float) * (size_t)run->size[0];
}

} // namespace

LAB_LAUNCHER(gck_pinned_fill) {
    return (int)cudaMemcpy(run->buffer[0], run->host[0], bytes_of(run), cudaMemcpyHostToDevice);
}

LAB_LAUNCHER(gck_pinned_to) {
    return (int)cudaMemcpyAsync(run->buffer[1], run->host[0], bytes_of(run), cudaMemcpyHostToDevice,
                                course::stream(run));
}

LAB_LAUNCHER(gck_pinned_from) {
    return (int)cudaMemcpyAsync(run->host[1], run->buffer[0], bytes_of(run), cudaMemcpyDeviceToHost,
                                course::stream(run));
}

LAB_LAUNCHER(gck_pinned_mapped) {
    through<<<course::ceil_div(run->size[0], 256), 256, 0, course::stream(run)>>>(
        course::buffer<const float>(run, 0), course::buffer<float>(run, 1), run->size[0]);
    return (int)cudaGetLastError();
}
