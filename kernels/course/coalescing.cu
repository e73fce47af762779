/* The kernels of module coalescing, one for each order of access in coalescing.c. Every kernel doubles each element
 * once. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK = 256, TILE = 32, BLOCK_ROWS = 8 };

__global__ void horizontal(const float *in, float *out, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        out[i] = 2.0f * in[i];
}

__global__ void vertical(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (t < rows * columns) {
        int64_t i = t % rows * columns + t / rows;
        out[i] = 2.0f * in[i];
    }
}

__global__ void corner_turned(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[TILE][TILE + 1];
    int64_t column = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        int64_t row = (int64_t)blockIdx.y * TILE + r;
        if (row < rows && column < columns)
            tile[r][threadIdx.x] = in[row * columns + column];
    }
    __syncthreads();
    for (int c = threadIdx.y; c < TILE; c += BLOCK_ROWS) /* the vertical order */
        tile[threadIdx.x][c] *= 2.0f;
    __syncthreads();
    for (int r = threadIdx.y; r < TILE; r += BLOCK_ROWS) {
        int64_t row = (int64_t)blockIdx.y * TILE + r;
        if (row < rows && column < columns)
            out[row * columns + column] = tile[r][threadIdx.x];
    }
}

__global__ void strided(const float *in, float *out, int64_t n, int stride) {
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, groups = n / stride;
    if (t >= n)
        return;
    int64_t i = t < groups * stride ? t % groups * stride + t / groups : t;
    out[i] = 2.0f * in[i];
}

__global__ void with_offset(const float *in, float *out, int64_t n, int offset) {
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (t >= n)
        return;
    int64_t i = t + offset < n ? t + offset : t + offset - n; /* the last threads wrap around to the first elements */
    out[i] = 2.0f * in[i];
}

/* N floats per thread; the n mod N last elements get a thread each. */
template <int N, typename Vector> __global__ void by_vector(const float *in, float *out, int64_t n) {
    int64_t t = (int64_t)blockIdx.x * BLOCK + threadIdx.x, vector_count = n / N;
    if (t < vector_count) {
        Vector v = ((const Vector *)in)[t];
        v.x *= 2.0f, v.y *= 2.0f, v.z *= 2.0f;
        if constexpr (N == 4)
            v.w *= 2.0f;
        ((Vector *)out)[t] = v;
    } else if (t < vector_count + n % N) {
        int64_t i = vector_count * N + t - vector_count;
        out[i] = 2.0f * in[i];
    }
}

int64_t element_count(const gc_lab_run *run) {
    return run->size[0] * run->size[1];
}

} // namespace

LAB_LAUNCHER(gck_coalescing_horizontal) {
    horizontal<<<ceil_div(element_count(run), BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), element_count(run));
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_vertical) {
    vertical<<<ceil_div(element_count(run), BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->size[1]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_corner_turned) {
    corner_turned<<<dim3(ceil_div(run->size[1], TILE), ceil_div(run->size[0], TILE)), dim3(TILE, BLOCK_ROWS), 0,
                    stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->size[1]);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_strided) {
    strided<<<ceil_div(element_count(run), BLOCK), BLOCK, 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), element_count(run), run->parameter);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_offset) {
    int64_t n = element_count(run), offset = run->parameter % n;
    with_offset<<<ceil_div(n, BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1), n,
                                                               (int)offset);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_float3) {
    int64_t n = element_count(run);
    by_vector<3, float3><<<ceil_div(n / 3 + n % 3, BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                                    buffer<float>(run, 1), n);
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_coalescing_float4) {
    int64_t n = element_count(run);
    by_vector<4, float4><<<ceil_div(n / 4 + n % 4, BLOCK), BLOCK, 0, stream(run)>>>(buffer<const float>(run, 0),
                                                                                    buffer<float>(run, 1), n);
    return cudaGetLastError();
}
