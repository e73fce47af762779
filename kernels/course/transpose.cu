/* The kernels of module transpose: out[c][r] = in[r][c]. A block of 32 x 8 threads processes a tile of 32 x 32, with
 * four rows per thread. */
#include "course.cuh"

using namespace course;

namespace {

enum { TILE = 32, BLOCK_ROWS = 8, WIDE_TILE = 64, WIDE_THREADS = 256 };

__global__ void copy_rows(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int64_t r = (int64_t)blockIdx.y * TILE + y;
        if (r < rows && c < columns)
            out[r * columns + c] = in[r * columns + c];
    }
}

__global__ void copy_shared(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[TILE][TILE];
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x, r0 = (int64_t)blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (r0 + y < rows && c < columns)
            tile[y][threadIdx.x] = in[(r0 + y) * columns + c];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (r0 + y < rows && c < columns)
            out[(r0 + y) * columns + c] = tile[y][threadIdx.x];
}

__global__ void transpose_naive(const float *in, float *out, int64_t rows, int64_t columns) {
    int64_t c = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int64_t r = (int64_t)blockIdx.y * TILE + y;
        if (r < rows && c < columns)
            out[c * rows + r] = in[r * columns + c];
    }
}

/* PAD = 0: a column of the tile is in one bank. PAD = 1: it is in all 32 banks. */
template <int PAD> __global__ void transpose_tile(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[TILE][TILE + PAD];
    int64_t c0 = (int64_t)blockIdx.x * TILE, r0 = (int64_t)blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (r0 + y < rows && c0 + threadIdx.x < columns)
            tile[y][threadIdx.x] = in[(r0 + y) * columns + c0 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (c0 + y < columns && r0 + threadIdx.x < rows)
            out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

/* Tiles of 64 x 64. A thread reads a float4 from each of four rows and writes a float4 to each of four rows of the
 * output. Both sizes of the matrix must be multiples of four. */
__global__ void __launch_bounds__(WIDE_THREADS)
    transpose_float4(const float *in, float *out, int64_t rows, int64_t columns) {
    __shared__ float tile[WIDE_TILE][WIDE_TILE + 1];
    enum { ROW_VECTORS = WIDE_TILE / 4, STEP = WIDE_THREADS / ROW_VECTORS };
    int q = threadIdx.x % ROW_VECTORS * 4, first_row = threadIdx.x / ROW_VECTORS;
    int64_t c0 = (int64_t)blockIdx.x * WIDE_TILE, r0 = (int64_t)blockIdx.y * WIDE_TILE;
    float4 vector[WIDE_TILE / STEP];
#pragma unroll
    for (int k = 0; k < WIDE_TILE / STEP; k++) {
        int64_t r = r0 + first_row + k * STEP;
        if (r < rows && c0 + q < columns)
            vector[k] = __ldcs((const float4 *)(in + r * columns + c0 + q));
    }
#pragma unroll
    for (int k = 0; k < WIDE_TILE / STEP; k++) {
        float *to = &tile[first_row + k * STEP][q];
        to[0] = vector[k].x, to[1] = vector[k].y, to[2] = vector[k].z, to[3] = vector[k].w;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < WIDE_TILE / STEP; k++) {
        int c = first_row + k * STEP;
        if (c0 + c < columns && r0 + q < rows)
            __stcs((float4 *)(out + (c0 + c) * rows + r0 + q),
                   make_float4(tile[q][c], tile[q + 1][c], tile[q + 2][c], tile[q + 3][c]));
    }
}

typedef void kernel(const float *, float *, int64_t, int64_t);

int launch(kernel *k, const gc_lab_run *run) {
    dim3 grid(ceil_div(run->size[1], TILE), ceil_div(run->size[0], TILE)), block(TILE, BLOCK_ROWS);
    k<<<grid, block, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0], run->size[1]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_transpose_copy) {
    return launch(copy_rows, run);
}

LAB_LAUNCHER(gck_transpose_copy_shared) {
    return launch(copy_shared, run);
}

LAB_LAUNCHER(gck_transpose_naive) {
    return launch(transpose_naive, run);
}

LAB_LAUNCHER(gck_transpose_tile) {
    return launch(transpose_tile<0>, run);
}

LAB_LAUNCHER(gck_transpose_padded) {
    return launch(transpose_tile<1>, run);
}

/* A row that does not begin at a multiple of 16 bytes cannot be accessed as float4; such matrices use the padded tile.
 */
LAB_LAUNCHER(gck_transpose_best) {
    if (run->size[0] % 4 || run->size[1] % 4)
        return launch(transpose_tile<1>, run);
    dim3 grid(ceil_div(run->size[1], WIDE_TILE), ceil_div(run->size[0], WIDE_TILE));
    transpose_float4<<<grid, WIDE_THREADS, 0, stream(run)>>>(buffer<const float>(run, 0), buffer<float>(run, 1),
                                                             run->size[0], run->size[1]);
    return cudaGetLastError();
}
