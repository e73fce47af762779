/* Vector addition on the GPU: c[i] = a[i] + b[i]. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, QUADS = 4 };

__global__ void __launch_bounds__(BLOCK) simple(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void strided(const float *a, const float *b, float *c, int64_t n) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        c[i] = a[i] + b[i];
}

/* Each thread has QUADS quads of both inputs under way; the quads of a warp lie side by side. */
__global__ void __launch_bounds__(BLOCK) float4s(const float *a, const float *b, float *c, int64_t n) {
    int64_t quads = n / 4, q = (int64_t)blockIdx.x * BLOCK * QUADS + threadIdx.x;
    float4 x[QUADS], y[QUADS];
#pragma unroll
    for (int k = 0; k < QUADS; k++)
        if (q + k * BLOCK < quads) {
            x[k] = __ldcs((const float4 *)a + q + k * BLOCK);
            y[k] = __ldcs((const float4 *)b + q + k * BLOCK);
        }
#pragma unroll
    for (int k = 0; k < QUADS; k++)
        if (q + k * BLOCK < quads)
            __stcs((float4 *)c + q + k * BLOCK,
                   make_float4(x[k].x + y[k].x, x[k].y + y[k].y, x[k].z + y[k].z, x[k].w + y[k].w));
    if (blockIdx.x == 0 && threadIdx.x < n - 4 * quads)
        c[4 * quads + threadIdx.x] = a[4 * quads + threadIdx.x] + b[4 * quads + threadIdx.x];
}

void launch_simple(const gc_lab_run *run) {
    simple<<<pieces(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), run->size[0]);
}

int launch_stride(const gc_lab_run *run, int blocks, int threads) {
    strided<<<blocks, threads, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<const float>(run, 1),
                                                 buffer<float>(run, 2), run->size[0]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_vector_add_simple) {
    launch_simple(run);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_vector_add_few) {
    return launch_stride(run, 20, 32);
}

LAB_LAUNCHER(gck_vector_add_stride) {
    return launch_stride(run, 8 * run->multiprocessors, BLOCK);
}

LAB_LAUNCHER(gck_vector_add_float4) {
    float4s<<<pieces(run->size[0], 4 * BLOCK * QUADS), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), run->size[0]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_vector_add_copies) {
    size_t bytes = (size_t)run->size[0] * sizeof(float);
    cudaError_t failed = cudaSuccess;
    for (int i = 0; !failed && i < 2; i++)
        failed = cudaMemcpyAsync(run->buffer[i], run->host[i], bytes, cudaMemcpyHostToDevice, stream(run));
    if (failed)
        return failed;
    launch_simple(run);
    failed = cudaGetLastError();
    return failed ? failed : cudaMemcpyAsync(run->host[2], run->buffer[2], bytes, cudaMemcpyDeviceToHost, stream(run));
}
