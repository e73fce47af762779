/*
 * The kernels of module flash-attention in single precision: three kernels with the scores in memory, and one kernel
 * with the online softmax. All of them multiply in the same tiles, so that the scores in memory are the difference.
 *
 * A block of 16 x 16 threads keeps 64 queries. Each thread has four of these queries, 16 apart, four keys, 16 apart, of
 * each block of 64 keys, and eight columns of the output, in two vectors of four floats.
 */
#include "course.cuh"

using namespace course;

namespace {

enum { D = 128, SIDE = 16, QUERIES = 64, KEYS = 64, ROW_STRIDE = D + 4, P_STRIDE = KEYS + 4 };

/* exp(s / sqrt(d)) = 2^(exponent_scale s) */
__device__ const float exponent_scale = 1.4426950408889634f * 0.08838834764831845f;

/* ---- Tiles ------------------------------------------------------------------------------------------------------- */

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

/* Adds the products of the thread's queries and keys to its scores. */
__device__ __forceinline__ void add_scores(float (&s)[4][4], const float *qs, const float *ks) {
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
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
}

/* Adds the values of 64 keys, each times its weight, to the thread's output. */
__device__ __forceinline__ void add_values(float (&out)[4][8], const float *ps, const float *vs) {
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
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
}

/* Writes the thread's output to the rows from `first_row` on that exist. */
__device__ __forceinline__ void store_output(const float (&out)[4][8], float *o, int64_t first_row, int64_t tokens) {
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int64_t i = first_row + y + SIDE * r;
        if (i >= tokens)
            continue;
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float4 *)(o + i * D + 64 * h + 4 * x) =
                make_float4(out[r][4 * h], out[r][4 * h + 1], out[r][4 * h + 2], out[r][4 * h + 3]);
    }
}

/* ---- Scores in memory -------------------------------------------------------------------------------------------- */

/* s = q k', tokens x tokens for each head. A block keeps 64 queries and takes 64 keys at a time. */
__global__ void __launch_bounds__(SIDE *SIDE) scores(const float *q, const float *k, float *s, int64_t tokens) {
    extern __shared__ __align__(16) float shared[];
    float *qs = shared, *ks = qs + QUERIES * ROW_STRIDE;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const int64_t head = (int64_t)blockIdx.y * tokens, first_row = (int64_t)blockIdx.x * QUERIES;
    load_tile(q + head * D, tokens, first_row, qs);
    for (int64_t j0 = 0; j0 < tokens; j0 += KEYS) {
        __syncthreads(); /* all threads have finished with the previous keys */
        load_tile(k + head * D, tokens, j0, ks);
        __syncthreads();
        float block[4][4] = {};
        add_scores(block, qs, ks);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int64_t i = first_row + y + SIDE * r, j = j0 + x + SIDE * c;
                if (i < tokens && j < tokens)
                    s[(head + i) * tokens + j] = block[r][c];
            }
    }
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

/* Copies the weights of 64 queries for 64 keys to shared memory. Those of keys past the last token become zero. */
__device__ void load_weights(const float *p, int64_t tokens, int64_t first_row, int64_t first_key, float *ps) {
    for (int i = threadIdx.x; i < QUERIES * KEYS; i += SIDE * SIDE) {
        const int64_t row = first_row + i / KEYS, key = first_key + i % KEYS;
        ps[i / KEYS * P_STRIDE + i % KEYS] = row < tokens && key < tokens ? p[row * tokens + key] : 0.0f;
    }
}

/* o = p v. A block keeps the output of 64 queries and takes 64 keys at a time. */
__global__ void __launch_bounds__(SIDE *SIDE)
    weighted_values(const float *p, const float *v, float *o, int64_t tokens) {
    extern __shared__ __align__(16) float shared[];
    float *vs = shared, *ps = vs + KEYS * ROW_STRIDE;
    const int64_t head = (int64_t)blockIdx.y * tokens, first_row = (int64_t)blockIdx.x * QUERIES;
    float out[4][8] = {};
    for (int64_t j0 = 0; j0 < tokens; j0 += KEYS) {
        __syncthreads(); /* all threads have finished with the previous keys */
        load_tile(v + head * D, tokens, j0, vs);
        load_weights(p + head * tokens, tokens, first_row, j0, ps);
        __syncthreads();
        add_values(out, ps, vs);
    }
    store_output(out, o + head * D, first_row, tokens);
}

/* ---- Online ------------------------------------------------------------------------------------------------------ */

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
        add_scores(s, qs, ks);
        softmax_step(s, out, row_max, sum, ps, j0, tokens);
        __syncwarp(); /* the same sixteen threads, of one warp, write and read a row of ps */
        add_values(out, ps, vs);
        __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 8; c++)
            out[r][c] /= sum[r];
    store_output(out, o + head, first_row, tokens);
}

} // namespace

/* The scores of as many heads as the scratch buffer holds are in memory at a time. */
LAB_LAUNCHER(gck_attention_three_kernels) {
    const int64_t tokens = run->size[0], heads = run->size[1], together = run->count[4] / (tokens * tokens);
    const int scores_bytes = 2 * KEYS * ROW_STRIDE * (int)sizeof(float),
              values_bytes = (KEYS * ROW_STRIDE + QUERIES * P_STRIDE) * (int)sizeof(float);
    float *s = buffer<float>(run, 4);
    cudaError_t err = cudaFuncSetAttribute(scores, cudaFuncAttributeMaxDynamicSharedMemorySize, scores_bytes);
    if (!err)
        err = cudaFuncSetAttribute(weighted_values, cudaFuncAttributeMaxDynamicSharedMemorySize, values_bytes);
    if (err)
        return err;
    for (int64_t h = 0; h < heads; h += together) {
        const int64_t head_offset = h * tokens * D;
        const unsigned count = (unsigned)(heads - h < together ? heads - h : together);
        const dim3 blocks(ceil_div(tokens, QUERIES), count);
        scores<<<blocks, SIDE * SIDE, scores_bytes, stream(run)>>>(
            buffer<const float>(run, 0) + head_offset, buffer<const float>(run, 1) + head_offset, s, tokens);
        softmax<<<(unsigned)tokens * count, 256, 0, stream(run)>>>(s, tokens);
        weighted_values<<<blocks, SIDE * SIDE, values_bytes, stream(run)>>>(
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
