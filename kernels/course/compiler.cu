/* The kernels of module compiler. gpulab ptx compiler shows the code that the compiler generates for them. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, TAPS = 32 };

__global__ void rolled(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < TAPS; k++)
        sum += h[k] * x[i + k];
    y[i] = sum;
}

__global__ void unrolled(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        sum += h[k] * x[i + k];
    y[i] = sum;
}

__global__ void aliased(const float *x, const float *h, float *y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    y[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        y[i] += h[k] * x[i + k];
}

__global__ void restricted(const float *__restrict__ x, const float *__restrict__ h, float *__restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    y[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        y[i] += h[k] * x[i + k];
}

__global__ void exact(const float *__restrict__ x, float *__restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = sinf(x[i]) * expf(-x[i]);
}

__global__ void fast(const float *__restrict__ x, float *__restrict__ y, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = __sinf(x[i]) * __expf(-x[i]);
}

int launch_filter(void (*kernel)(const float *, const float *, float *, int64_t), const gc_lab_run *run) {
    kernel<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<float>(run, 2), run->size[0]);
    return (int)cudaGetLastError();
}

int launch_formula(void (*kernel)(const float *, float *, int64_t), const gc_lab_run *run) {
    kernel<<<ceil_div(run->size[0], BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 2),
                                                                     run->size[0]);
    return (int)cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_compiler_rolled) {
    return launch_filter(rolled, run);
}

LAB_LAUNCHER(gck_compiler_unrolled) {
    return launch_filter(unrolled, run);
}

LAB_LAUNCHER(gck_compiler_aliased) {
    return launch_filter(aliased, run);
}

LAB_LAUNCHER(gck_compiler_restrict) {
    return launch_filter(restricted, run);
}

LAB_LAUNCHER(gck_compiler_exact) {
    return launch_formula(exact, run);
}

LAB_LAUNCHER(gck_compiler_fast) {
    return launch_formula(fast, run);
}
