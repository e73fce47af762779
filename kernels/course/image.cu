/* Fading and blurring images; blocks of 32 x 8 threads. */
#include "course.cuh"

using namespace course;

namespace {

enum { WIDE = 32, HIGH = 8, ROWS = 8 };

__global__ void fade(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x < width && y < height)
        out[(int64_t)y * width + x] = 0.5f * in[(int64_t)y * width + x];
}

__device__ __forceinline__ int inside(int i, int n) {
    return min(max(i, 0), n - 1);
}

__global__ void blur(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++) {
        const float *row = in + (int64_t)inside(y + dy, height) * width;
        float across = row[inside(x - 1, width)] + 2.0f * row[x] + row[inside(x + 1, width)];
        sum += dy ? across : 2.0f * across;
    }
    out[(int64_t)y * width + x] = sum * 0.0625f;
}

__global__ void blur_tile(const float *in, float *out, int width, int height) {
    __shared__ float tile[HIGH + 2][WIDE + 2];
    int x0 = blockIdx.x * WIDE - 1, y0 = blockIdx.y * HIGH - 1;
    for (int i = threadIdx.y * WIDE + threadIdx.x; i < (HIGH + 2) * (WIDE + 2); i += WIDE * HIGH) {
        int y = i / (WIDE + 2), x = i % (WIDE + 2);
        tile[y][x] = in[(int64_t)inside(y0 + y, height) * width + inside(x0 + x, width)];
    }
    __syncthreads();
    int x = blockIdx.x * WIDE + threadIdx.x, y = blockIdx.y * HIGH + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0.0f;
#pragma unroll
    for (int dy = 0; dy < 3; dy++) {
        const float *row = &tile[threadIdx.y + dy][threadIdx.x];
        float across = row[0] + 2.0f * row[1] + row[2];
        sum += dy == 1 ? 2.0f * across : across;
    }
    out[(int64_t)y * width + x] = sum * 0.0625f;
}

/* The width is a multiple of four. A thread makes four pixels in each of ROWS rows; all of its loads go out first. */
__global__ void __launch_bounds__(WIDE *HIGH) blur_rows(const float *in, float *out, int width, int height) {
    int x = (blockIdx.x * WIDE + threadIdx.x) * 4, y0 = (blockIdx.y * HIGH + threadIdx.y) * ROWS;
    if (x >= width || y0 >= height)
        return;
    int left = inside(x - 1, width), right = inside(x + 4, width);
    float4 v[ROWS + 2];
    float l[ROWS + 2], r[ROWS + 2];
#pragma unroll
    for (int k = 0; k < ROWS + 2; k++) {
        const float *row = in + (int64_t)inside(y0 - 1 + k, height) * width;
        v[k] = *(const float4 *)(row + x);
        l[k] = row[left];
        r[k] = row[right];
    }
    float4 sum[ROWS + 2];
#pragma unroll
    for (int k = 0; k < ROWS + 2; k++)
        sum[k] = make_float4(l[k] + 2.0f * v[k].x + v[k].y, v[k].x + 2.0f * v[k].y + v[k].z,
                             v[k].y + 2.0f * v[k].z + v[k].w, v[k].z + 2.0f * v[k].w + r[k]);
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        if (y0 + k < height)
            __stcs((float4 *)(out + (int64_t)(y0 + k) * width + x),
                   make_float4((sum[k].x + 2.0f * sum[k + 1].x + sum[k + 2].x) * 0.0625f,
                               (sum[k].y + 2.0f * sum[k + 1].y + sum[k + 2].y) * 0.0625f,
                               (sum[k].z + 2.0f * sum[k + 1].z + sum[k + 2].z) * 0.0625f,
                               (sum[k].w + 2.0f * sum[k + 1].w + sum[k + 2].w) * 0.0625f));
}

typedef void kernel(const float *, float *, int, int);

int launch(kernel *k, int wide, int high, const gc_lab_run *run) {
    k<<<dim3(pieces(run->size[0], wide), pieces(run->size[1], high)), dim3(WIDE, HIGH), 0, stream(run)>>>(
        buffer<const float>(run, 0), buffer<float>(run, 1), (int)run->size[0], (int)run->size[1]);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_image_fade) {
    return launch(fade, WIDE, HIGH, run);
}

LAB_LAUNCHER(gck_image_blur) {
    return launch(blur, WIDE, HIGH, run);
}

LAB_LAUNCHER(gck_image_blur_tile) {
    return launch(blur_tile, WIDE, HIGH, run);
}

/* Rows that do not begin on 16 bytes cannot be read in quads: such images take the tile. */
LAB_LAUNCHER(gck_image_blur_rows) {
    if (run->size[0] % 4)
        return launch(blur_tile, WIDE, HIGH, run);
    return launch(blur_rows, 4 * WIDE, ROWS * HIGH, run);
}
