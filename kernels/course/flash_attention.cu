/*
 * The kernels of module flash-attention in single precision: three kernels with the scores in memory, and one kernel
 * with the online softmax.
 *
 * In the online kernel a block of 16 x 16 threads keeps 64 queries. Each thread has four of these queries, 16 apart,
 * four keys, 16 apart, of each block of 64 keys, and eight columns of the output, in two vectors of four floats.
 */
#include "course.cuh"

using namespace course;

namespace {

enum { D = 128, TILE = 32, SIDE = 16, QUERIES = 64, KEYS = 64, ROW_STRIDE = D + 4, P_STRIDE = KEYS + 4 };

/* exp(s / sqrt(d)) = 2^(exponent_scale s) */
__device__ const float exponent_scale = 1.4426950408889634f * 0.08838834764831845f;

/* ---- Scores in memory -------------------------------------------------------------------------------------------- */

/* s = q k', tokens x tokens. A block computes a tile of 32 x 32. */
__global__ void __launch_bounds__(TILE *TILE) scores(const float *q, const float *k, float *s, int64_t tokens) {
    __shared__ float qs[TILE][TILE], ks[TILE][TILE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * TILE + y, j0 = (int64_t)blockIdx.x * TILE;
    float sum = 0.0f;
    for (int d = 0; d < D; d += TILE) {
        qs[y][x] = i < tokens ? q[i * D + d + x] : 0.0f;
        ks[y][x] = j0 + y < tokens ? k[(j0 + y) * D + d + x] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; e++)
            sum = fmaf(qs[y][e], ks[x][e], sum);
        __syncthreads();
    }
    if (i < tokens && j0 + x < tokens)
        s[i * tokens + j0 + x] = sum;
}

/* Returns the combined value of all 256 threads of the block, to each of them. */
template <typename Combine> __device__ float reduce_block(float v, Combine combine) {
    __shared__ float warp_results[8];
    for (int offset = 16; offset > 0; offset /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
    __syncthreads(); /* threads may still read the results of the previous call */
    if (threadIdx.x % 32 == 0)
        warp_results[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp_results[0];
    for (int w = 1; w < 8; w++)
        v = combine(v, warp_results[w]);
    return v;
}

/* Replaces each row of scores by its softmax, one row per block of 256 threads. */
__global__ void softmax(float *s, int64_t tokens) {
    float *row = s + (int64_t)blockIdx.x * tokens, row_max = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x)
        row_max = fmaxf(row_max, row[j]);
    row_max = reduce_block(row_max, [](float a, float b) { return fmaxf(a, b); });
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x) {
        row[j] = exp2f((row[j] - row_max) * exponent_scale);
        sum += row[j];
    }
    sum = reduce_block(sum, [](float a, float b) { return a + b; });
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x)
        row[j] /= sum;
}

/* o = p v. A block computes a tile of 32 x 32. */
__global__ void __launch_bounds__(TILE *TILE)
    weighted_values(const float *p, const float *v, float *o, int64_t tokens) {
    __shared__ float ps[TILE][TILE], vs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * TILE + y;
    int d = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int64_t j = 0; j < tokens; j += TILE) {
        ps[y][x] = i < tokens && j + x < tokens ? p[i * tokens + j + x] : 0.0f;
        vs[y][x] = j + y < tokens ? v[(j + y) * D + d] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; e++)
            sum = fmaf(ps[y][e], vs[e][x], sum);
        __syncthreads();
    }
    if (i < tokens)
        o[i * D + d] = sum;
}

/* ---- Online ------------------------------------------------------------------------------------------------------ */

/* Copies 64 rows of `src`, from row `first_row`, to shared memory. Rows past the last token become zero. */
__device__ void load_tile(const float *src, int64_t tokens, int64_t first_row, float *dst) {
    for (int i = threadIdx.x; i < KEYS * D / 4; i += SIDE * SIDE) {
        int row = i / (D / 4), e = i % (D / 4) * 4;
        float4 v = make_float4(0, 0, 0, 0);
        if (first_row + row < tokens)
            v = *(const float4 *)(src + (first_row + row) * D + e);
        *(float4 *)(dst + row * ROW_STRIDE + e) = v;
    }
}

/* Returns the maximum or the sum over 16 neighbouring lanes, which have the same queries. */
__device__ float reduce_side(float v, bool use_max) {
#pragma unroll
    for (int offset = SIDE / 2; offset > 0; offset /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, offset);
        v = use_max ? fmaxf(v, other) : v + other;
    }
    return v;
}

/* The step of the online softmax for four queries and four keys of a thread. Replaces the scores by weights, which it
 * also writes to shared memory, and rescales the output and the sums of the weights. Keys past the last token get the
 * weight zero. */
__device__ __forceinline__ void softmax_step(float (&s)[4][4], float (&out)[4][8], float (&row_max)[4], float (&sum)[4],
                                             float *ps, int64_t j0, int64_t tokens) {
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float new_max = -INFINITY, block_sum = 0.0f;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            if (j0 + x + SIDE * c >= tokens)
                s[r][c] = -INFINITY;
            new_max = fmaxf(new_max, s[r][c]);
        }
        new_max = fmaxf(row_max[r], reduce_side(new_max, true));
        float rescale = exp2f((row_max[r] - new_max) * exponent_scale);
        row_max[r] = new_max;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            s[r][c] = exp2f((s[r][c] - new_max) * exponent_scale);
            block_sum += s[r][c];
            ps[(y + SIDE * r) * P_STRIDE + x + SIDE * c] = s[r][c];
        }
        sum[r] = sum[r] * rescale + reduce_side(block_sum, false);
#pragma unroll
        for (int c = 0; c < 8; c++)
            out[r][c] *= rescale;
    }
}

__global__ void __launch_bounds__(SIDE *SIDE)
    online(const float *q, const float *k, const float *v, float *o, int64_t tokens) {
    extern __shared__ __align__(16) float shared[];
    float *qs = shared, *ks = qs + QUERIES * ROW_STRIDE, *vs = ks + KEYS * ROW_STRIDE, *ps = vs + KEYS * ROW_STRIDE;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const int64_t head = (int64_t)blockIdx.y * tokens * D, first_row = (int64_t)blockIdx.x * QUERIES;
    float out[4][8] = {}, row_max[4], sum[4] = {};
    for (int r = 0; r < 4; r++)
        row_max[r] = -INFINITY;
    load_tile(q + head, tokens, first_row, qs);
    for (int64_t j0 = 0; j0 < tokens; j0 += KEYS) {
        __syncthreads(); /* all threads have finished with the previous keys */
        load_tile(k + head, tokens, j0, ks);
        load_tile(v + head, tokens, j0, vs);
        __syncthreads();
        float s[4][4] = {};
#pragma unroll 4
        for (int e = 0; e < D; e += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                a[r] = *(const float4 *)(qs + (y + SIDE * r) * ROW_STRIDE + e);
                b[r] = *(const float4 *)(ks + (x + SIDE * r) * ROW_STRIDE + e);
            }
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    s[r][c] =
                        fmaf(a[r].x, b[c].x, fmaf(a[r].y, b[c].y, fmaf(a[r].z, b[c].z, fmaf(a[r].w, b[c].w, s[r][c]))));
        }
        softmax_step(s, out, row_max, sum, ps, j0, tokens);
        __syncwarp(); /* the same sixteen threads, of one warp, write and read a row of ps */
#pragma unroll 4
        for (int j = 0; j < KEYS; j++) {
            float4 b[2] = {*(const float4 *)(vs + j * ROW_STRIDE + 4 * x),
                           *(const float4 *)(vs + j * ROW_STRIDE + 64 + 4 * x)};
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float p = ps[(y + SIDE * r) * P_STRIDE + j];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    out[r][4 * h] = fmaf(p, b[h].x, out[r][4 * h]);
                    out[r][4 * h + 1] = fmaf(p, b[h].y, out[r][4 * h + 1]);
                    out[r][4 * h + 2] = fmaf(p, b[h].z, out[r][4 * h + 2]);
                    out[r][4 * h + 3] = fmaf(p, b[h].w, out[r][4 * h + 3]);
                }
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int64_t i = first_row + y + SIDE * r;
        if (i >= tokens)
            continue;
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float4 *)(o + head + i * D + 64 * h + 4 * x) =
                make_float4(out[r][4 * h] / sum[r], out[r][4 * h + 1] / sum[r], out[r][4 * h + 2] / sum[r],
                            out[r][4 * h + 3] / sum[r]);
    }
}

} // namespace

LAB_LAUNCHER(gck_attention_three_kernels) {
    const int64_t tokens = run->size[0];
    const unsigned tiles = ceil_div(tokens, TILE);
    float *s = buffer<float>(run, 4);
    for (int64_t h = 0; h < run->size[1]; h++) {
        const int64_t head_offset = h * tokens * D;
        scores<<<dim3(tiles, tiles), dim3(TILE, TILE), 0, stream(run)>>>(
            buffer<const float>(run, 0) + head_offset, buffer<const float>(run, 1) + head_offset, s, tokens);
        softmax<<<(unsigned)tokens, 256, 0, stream(run)>>>(s, tokens);
        weighted_values<<<dim3(D / TILE, tiles), dim3(TILE, TILE), 0, stream(run)>>>(
            s, buffer<const float>(run, 2) + head_offset, buffer<float>(run, 3) + head_offset, tokens);
    }
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_attention_online) {
    const int shared_bytes = (3 * KEYS * ROW_STRIDE + QUERIES * P_STRIDE) * (int)sizeof(float);
    cudaError_t err = cudaFuncSetAttribute(online, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (err)
        return err;
    online<<<dim3(ceil_div(run->size[0], QUERIES), (unsigned)run->size[1]), SIDE * SIDE, shared_bytes, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<const float>(run, 2), buffer<float>(run, 3),
        run->size[0]);
    return cudaGetLastError();
}
