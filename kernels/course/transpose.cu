/* Transpositions on the GPU: out[c][r] = in[r][c]. Blocks of 32 x 8 threads turn tiles of 32 x 32, four rows a thread.
 */
#include "course.cuh"

using namespace course;

namespace {

enum { TILE = 32, ROWS = 8, WIDE = 64, WIDE_THREADS = 256 };

__global__ void copy(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        int64_t r = (int64_t)blockIdx.y * TILE + y;
        if (r < rows && c < columns)
            out[r * columns + c] = in[r * columns + c];
    }
}

__global__ void copy_shared(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[TILE][TILE];
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x, r0 = (int64_t)blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (r0 + y < rows && c < columns)
            tile[y][threadIdx.x] = in[(r0 + y) * columns + c];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (r0 + y < rows && c < columns)
            out[(r0 + y) * columns + c] = tile[y][threadIdx.x];
}

__global__ void naive(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += ROWS) {
        int64_t r = (int64_t)blockIdx.y * TILE + y;
        if (r < rows && c < columns)
            out[c * rows + r] = in[r * columns + c];
    }
}

/* PAD = 0: a column of the tile is one bank. PAD = 1: it is all of them. */
template <int PAD> __global__ void turned(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[TILE][TILE + PAD];
    int64_t c0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (r0 + y < rows && c0 + threadIdx.x < columns)
            tile[y][threadIdx.x] = in[(r0 + y) * columns + c0 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += ROWS)
        if (c0 + y < columns && r0 + threadIdx.x < rows)
            out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

/* Rows and columns are multiples of four. A thread reads quads of four rows and writes quads of four columns. */
__global__ void __launch_bounds__(WIDE_THREADS) best(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[WIDE][WIDE + 1];
    enum { QUADS = WIDE / 4, STEP = WIDE_THREADS / QUADS };
    int q = threadIdx.x % QUADS * 4, first = threadIdx.x / QUADS;
    int64_t c0 = (int64_t)blockIdx.x * WIDE, r0 = (int64_t)blockIdx.y * WIDE;
    float4 v[WIDE / STEP];
#pragma unroll
    for (int k = 0; k < WIDE / STEP; k++) {
        int64_t r = r0 + first + k * STEP;
        if (r < rows && c0 + q < columns)
            v[k] = __ldcs((const float4 *)(in + r * columns + c0 + q));
    }
#pragma unroll
    for (int k = 0; k < WIDE / STEP; k++) {
        float *to = &tile[first + k * STEP][q];
        to[0] = v[k].x, to[1] = v[k].y, to[2] = v[k].z, to[3] = v[k].w;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < WIDE / STEP; k++) {
        int c = first + k * STEP;
        if (c0 + c < columns && r0 + q < rows)
            __stcs((float4 *)(out + (c0 + c) * rows + r0 + q),
                   make_float4(tile[q][c], tile[q + 1][c], tile[q + 2][c], tile[q + 3][c]));
    }
}

typedef void kernel(const float *, float *, int64_t, int64_t);

int launch(kernel *k, const gc_lab_run *run) {
    dim3 grid(ceil_div(run->size[1], TILE), ceil_div(run->size[0], TILE)), block(TILE, ROWS);
    k<<<grid, block, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->size[1]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_transpose_copy) {
    return launch(copy, run);
}

LAB_LAUNCHER(gck_transpose_copy_shared) {
    return launch(copy_shared, run);
}

LAB_LAUNCHER(gck_transpose_naive) {
    return launch(naive, run);
}

LAB_LAUNCHER(gck_transpose_tile) {
    return launch(turned<0>, run);
}

LAB_LAUNCHER(gck_transpose_padded) {
    return launch(turned<1>, run);
}

/* Rows that do not begin on 16 bytes cannot be read in quads: such matrices take the padded tile. */
LAB_LAUNCHER(gck_transpose_best) {
    if (run->size[0] % 4 || run->size[1] % 4)
        return launch(turned<1>, run);
    dim3 grid(ceil_div(run->size[1], WIDE), ceil_div(run->size[0], WIDE));
    best<<<grid, WIDE_THREADS, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0],
                                                 run->size[1]);
    return cudaGetLastError();
}
