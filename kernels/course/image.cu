/* The kernels of module image: fade and blur, in blocks of 32 x 8 threads. */
#include "course.cuh"

using namespace course;

namespace {

enum { BLOCK_X = 32, BLOCK_Y = 8, ROWS_PER_THREAD = 8 };

__global__ void fade(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (x < width && y < height)
        out[(int64_t)y * width + x] = 0.5f * in[(int64_t)y * width + x];
}

__device__ __forceinline__ int clamp_index(int i, int n) {
    return min(max(i, 0), n - 1);
}

__global__ void blur(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++) {
        const float *row = in + (int64_t)clamp_index(y + dy, height) * width;
        float row_sum = row[clamp_index(x - 1, width)] + 2.0f * row[x] + row[clamp_index(x + 1, width)];
        sum += dy ? row_sum : 2.0f * row_sum;
    }
    out[(int64_t)y * width + x] = sum * 0.0625f;
}

__global__ void blur_tile(const float *in, float *out, int width, int height) {
    __shared__ float tile[BLOCK_Y + 2][BLOCK_X + 2];
    int x0 = blockIdx.x * BLOCK_X - 1, y0 = blockIdx.y * BLOCK_Y - 1;
    for (int i = threadIdx.y * BLOCK_X + threadIdx.x; i < (BLOCK_Y + 2) * (BLOCK_X + 2); i += BLOCK_X * BLOCK_Y) {
        int y = i / (BLOCK_X + 2), x = i % (BLOCK_X + 2);
        tile[y][x] = in[(int64_t)clamp_index(y0 + y, height) * width + clamp_index(x0 + x, width)];
    }
    __syncthreads();
    int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int dy = 0; dy < 3; dy++) {
        const float *row = &tile[threadIdx.y + dy][threadIdx.x];
        float row_sum = row[0] + 2.0f * row[1] + row[2];
        sum += dy == 1 ? 2.0f * row_sum : row_sum;
    }
    out[(int64_t)y * width + x] = sum * 0.0625f;
}

/* Each thread computes four pixels in each of ROWS_PER_THREAD rows. It issues all of its loads before it uses the first
 * value. The width must be a multiple of four. */
__global__ void __launch_bounds__(BLOCK_X *BLOCK_Y) blur_registers(const float *in, float *out, int width, int height) {
    int x = (blockIdx.x * BLOCK_X + threadIdx.x) * 4, y0 = (blockIdx.y * BLOCK_Y + threadIdx.y) * ROWS_PER_THREAD;
    if (x >= width || y0 >= height)
        return;
    int left = clamp_index(x - 1, width), right = clamp_index(x + 4, width);
    float4 v[ROWS_PER_THREAD + 2];
    float l[ROWS_PER_THREAD + 2], r[ROWS_PER_THREAD + 2];
#pragma unroll
    for (int k = 0; k < ROWS_PER_THREAD + 2; k++) {
        const float *row = in + (int64_t)clamp_index(y0 - 1 + k, height) * width;
        v[k] = *(const float4 *)(row + x);
        l[k] = row[left];
        r[k] = row[right];
    }
    float4 sum[ROWS_PER_THREAD + 2];
#pragma unroll
    for (int k = 0; k < ROWS_PER_THREAD + 2; k++)
        sum[k] = make_float4(l[k] + 2.0f * v[k].x + v[k].y, v[k].x + 2.0f * v[k].y + v[k].z,
                             v[k].y + 2.0f * v[k].z + v[k].w, v[k].z + 2.0f * v[k].w + r[k]);
#pragma unroll
    for (int k = 0; k < ROWS_PER_THREAD; k++)
        if (y0 + k < height)
            __stcs((float4 *)(out + (int64_t)(y0 + k) * width + x),
                   make_float4((sum[k].x + 2.0f * sum[k + 1].x + sum[k + 2].x) * 0.0625f,
                               (sum[k].y + 2.0f * sum[k + 1].y + sum[k + 2].y) * 0.0625f,
                               (sum[k].z + 2.0f * sum[k + 1].z + sum[k + 2].z) * 0.0625f,
                               (sum[k].w + 2.0f * sum[k + 1].w + sum[k + 2].w) * 0.0625f));
}

typedef void kernel(const float *, float *, int, int);

/* Launches a kernel in which a block computes tile_x x tile_y pixels. */
int launch(kernel *k, int tile_x, int tile_y, const gc_lab_run *run) {
    k<<<dim3(ceil_div(run->size[0], tile_x), ceil_div(run->size[1], tile_y)), dim3(BLOCK_X, BLOCK_Y), 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), (int)run->size[0], (int)run->size[1]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_image_fade) {
    return launch(fade, BLOCK_X, BLOCK_Y, run);
}

LAB_LAUNCHER(gck_image_blur) {
    return launch(blur, BLOCK_X, BLOCK_Y, run);
}

LAB_LAUNCHER(gck_image_blur_tile) {
    return launch(blur_tile, BLOCK_X, BLOCK_Y, run);
}

/* A row that does not begin at a multiple of 16 bytes cannot be read as float4; such images use the tiled kernel. */
LAB_LAUNCHER(gck_image_blur_registers) {
    if (run->size[0] % 4)
        return launch(blur_tile, BLOCK_X, BLOCK_Y, run);
    return launch(blur_registers, 4 * BLOCK_X, ROWS_PER_THREAD * BLOCK_Y, run);
}
