/* The copies of module pinned-memory, and the kernel that accesses mapped memory. */
#include "course.cuh"

namespace {

__global__ void copy_mapped(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}

size_t input_bytes(const gc_lab_run *run) {
    return sizeof(float) * (size_t)run->size[0];
}

} // namespace

LAB_LAUNCHER(gck_pinned_fill_device) {
    return (int)cudaMemcpy(run->buffer[0], run->host[0], input_bytes(run), cudaMemcpyHostToDevice);
}

LAB_LAUNCHER(gck_pinned_to_device) {
    return (int)cudaMemcpyAsync(run->buffer[1], run->host[0], input_bytes(run), cudaMemcpyHostToDevice,
                                course::stream(run));
}

LAB_LAUNCHER(gck_pinned_from_device) {
    return (int)cudaMemcpyAsync(run->host[1], run->buffer[0], input_bytes(run), cudaMemcpyDeviceToHost,
                                course::stream(run));
}

LAB_LAUNCHER(gck_pinned_mapped) {
    copy_mapped<<<course::ceil_div(run->size[0], 256), 256, 0, course::stream(run)>>>(
        course::buffer<const float>(run, 0), course::buffer<float>(run, 1), run->size[0]);
    return (int)cudaGetLastError();
}
