/* The kernels of module vector-add: c[i] = a[i] + b[i]. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, VECTORS = 4 }; /* VECTORS: float4 vectors of each input per thread */

__global__ void __launch_bounds__(BLOCK) add_simple(const float *a, const float *b, float *c, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void add_strided(const float *a, const float *b, float *c, int64_t n) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        c[i] = a[i] + b[i];
}

/* Each thread loads VECTORS float4 vectors of both inputs before it uses the first; the threads of a warp access
 * neighbouring vectors. Block 0 also adds the last n mod 4 elements. */
__global__ void __launch_bounds__(BLOCK) add_float4(const float *a, const float *b, float *c, int64_t n) {
    int64_t vectors = n / 4, v = (int64_t)blockIdx.x * BLOCK * VECTORS + threadIdx.x;
    float4 x[VECTORS], y[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (v + k * BLOCK < vectors) {
            x[k] = __ldcs((const float4 *)a + v + k * BLOCK);
            y[k] = __ldcs((const float4 *)b + v + k * BLOCK);
        }
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (v + k * BLOCK < vectors)
            __stcs((float4 *)c + v + k * BLOCK,
                   make_float4(x[k].x + y[k].x, x[k].y + y[k].y, x[k].z + y[k].z, x[k].w + y[k].w));
    if (blockIdx.x == 0 && threadIdx.x < n - 4 * vectors)
        c[4 * vectors + threadIdx.x] = a[4 * vectors + threadIdx.x] + b[4 * vectors + threadIdx.x];
}

void launch_simple(const gc_lab_run *run) {
    add_simple<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), run->size[0]);
}

int launch_stride(const gc_lab_run *run, int blocks, int threads) {
    add_strided<<<blocks, threads, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<const float>(run, 1),
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
    add_float4<<<ceil_div(run->size[0], 4 * BLOCK * VECTORS), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), run->size[0]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_vector_add_copies) {
    size_t bytes = (size_t)run->size[0] * sizeof(float);
    cudaError_t err = cudaSuccess;
    for (int i = 0; !err && i < 2; i++)
        err = cudaMemcpyAsync(run->buffer[i], run->host[i], bytes, cudaMemcpyHostToDevice, stream(run));
    if (err)
        return err;
    launch_simple(run);
    err = cudaGetLastError();
    return err ? err : cudaMemcpyAsync(run->host[2], run->buffer[2], bytes, cudaMemcpyDeviceToHost, stream(run));
}
