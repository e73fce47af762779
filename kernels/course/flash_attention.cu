/*
 * Attention in single precision: through memory in three kernels, and in one with the online softmax.
 *
 * The online kernel: a block of 16 x 16 threads keeps 64 queries; a thread has four of them, 16 apart, and of each
 * block of 64 keys four, 16 apart, and of the output eight columns in two quads.
 */
#include "course.cuh"

using namespace course;

namespace {

enum { D = 128, SQUARE = 32, SIDE = 16, QUERIES = 64, KEYS = 64, ROW = D + 4, P_ROW = KEYS + 4 };

/* exp(s / sqrt(d)) as a power of two */
__device__ const float to_power = 1.4426950408889634f * 0.08838834764831845f;

/* ---- Through memory ---------------------------------------------------------------------------------------------- */

/* s = q k', tokens x tokens */
__global__ void __launch_bounds__(SQUARE *SQUARE) scores(const float *q, const float *k, float *s, int64_t tokens) {
    __shared__ float qs[SQUARE][SQUARE], ks[SQUARE][SQUARE + 1];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * SQUARE + y, j0 = (int64_t)blockIdx.x * SQUARE;
    float sum = 0.0f;
    for (int d = 0; d < D; d += SQUARE) {
        qs[y][x] = i < tokens ? q[i * D + d + x] : 0.0f;
        ks[y][x] = j0 + y < tokens ? k[(j0 + y) * D + d + x] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SQUARE; e++)
            sum = fmaf(qs[y][e], ks[x][e], sum);
        __syncthreads();
    }
    if (i < tokens && j0 + x < tokens)
        s[i * tokens + j0 + x] = sum;
}

template <typename Combine> __device__ float of_block(float v, Combine combine) {
    __shared__ float warp[8];
    for (int apart = 16; apart > 0; apart /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffffu, v, apart));
    __syncthreads(); /* the call before may still be reading */
    if (threadIdx.x % 32 == 0)
        warp[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp[0];
    for (int w = 1; w < 8; w++)
        v = combine(v, warp[w]);
    return v;
}

/* A row a block of 256. */
__global__ void softmax(float *s, int64_t tokens) {
    float *row = s + (int64_t)blockIdx.x * tokens, most = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x)
        most = fmaxf(most, row[j]);
    most = of_block(most, [](float a, float b) { return fmaxf(a, b); });
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x) {
        row[j] = exp2f((row[j] - most) * to_power);
        sum += row[j];
    }
    sum = of_block(sum, [](float a, float b) { return a + b; });
    for (int64_t j = threadIdx.x; j < tokens; j += blockDim.x)
        row[j] /= sum;
}

/* o = p v */
__global__ void __launch_bounds__(SQUARE *SQUARE) weigh(const float *p, const float *v, float *o, int64_t tokens) {
    __shared__ float ps[SQUARE][SQUARE], vs[SQUARE][SQUARE];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t i = (int64_t)blockIdx.y * SQUARE + y;
    int d = blockIdx.x * SQUARE + x;
    float sum = 0.0f;
    for (int64_t j = 0; j < tokens; j += SQUARE) {
        ps[y][x] = i < tokens && j + x < tokens ? p[i * tokens + j + x] : 0.0f;
        vs[y][x] = j + y < tokens ? v[(j + y) * D + d] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int e = 0; e < SQUARE; e++)
            sum = fmaf(ps[y][e], vs[e][x], sum);
        __syncthreads();
    }
    if (i < tokens)
        o[i * D + d] = sum;
}

/* ---- Online ------------------------------------------------------------------------------------------------------ */

__device__ void load(const float *from, int64_t tokens, int64_t first, float *to) {
    for (int i = threadIdx.x; i < KEYS * D / 4; i += SIDE * SIDE) {
        int row = i / (D / 4), e = i % (D / 4) * 4;
        float4 v = make_float4(0, 0, 0, 0);
        if (first + row < tokens)
            v = *(const float4 *)(from + (first + row) * D + e);
        *(float4 *)(to + row * ROW + e) = v;
    }
}

__device__ float of_side(float v, bool largest) {
#pragma unroll
    for (int apart = SIDE / 2; apart > 0; apart /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, apart);
        v = largest ? fmaxf(v, other) : v + other;
    }
    return v;
}

__global__ void __launch_bounds__(SIDE *SIDE)
    online(const float *q, const float *k, const float *v, float *o, int64_t tokens) {
    extern __shared__ __align__(16) float memory[];
    float *qs = memory, *ks = qs + QUERIES * ROW, *vs = ks + KEYS * ROW, *ps = vs + KEYS * ROW;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    const int64_t head = (int64_t)blockIdx.y * tokens * D, first = (int64_t)blockIdx.x * QUERIES;
    float out[4][8] = {}, most[4], sum[4] = {};
    for (int r = 0; r < 4; r++)
        most[r] = -INFINITY;
    load(q + head, tokens, first, qs);
    for (int64_t j0 = 0; j0 < tokens; j0 += KEYS) {
        __syncthreads(); /* everyone has done with the keys before */
        load(k + head, tokens, j0, ks);
        load(v + head, tokens, j0, vs);
        __syncthreads();
        float s[4][4] = {};
#pragma unroll 4
        for (int e = 0; e < D; e += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                a[r] = *(const float4 *)(qs + (y + SIDE * r) * ROW + e);
                b[r] = *(const float4 *)(ks + (x + SIDE * r) * ROW + e);
            }
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    s[r][c] =
                        fmaf(a[r].x, b[c].x, fmaf(a[r].y, b[c].y, fmaf(a[r].z, b[c].z, fmaf(a[r].w, b[c].w, s[r][c]))));
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float high = -INFINITY, add = 0.0f;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                if (j0 + x + SIDE * c >= tokens)
                    s[r][c] = -INFINITY;
                high = fmaxf(high, s[r][c]);
            }
            high = fmaxf(most[r], of_side(high, true));
            float fade = exp2f((most[r] - high) * to_power);
            most[r] = high;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                s[r][c] = exp2f((s[r][c] - high) * to_power);
                add += s[r][c];
                ps[(y + SIDE * r) * P_ROW + x + SIDE * c] = s[r][c];
            }
            sum[r] = sum[r] * fade + of_side(add, false);
#pragma unroll
            for (int c = 0; c < 8; c++)
                out[r][c] *= fade;
        }
        __syncwarp(); /* a row of ps is written and read by the same sixteen threads */
#pragma unroll 4
        for (int j = 0; j < KEYS; j++) {
            float4 b[2] = {*(const float4 *)(vs + j * ROW + 4 * x), *(const float4 *)(vs + j * ROW + 64 + 4 * x)};
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float p = ps[(y + SIDE * r) * P_ROW + j];
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
        int64_t i = first + y + SIDE * r;
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

LAB_LAUNCHER(gck_attention_three) {
    const int64_t tokens = run->size[0];
    const unsigned across = ceil_div(tokens, SQUARE);
    float *s = buffer<float>(run, 4);
    for (int64_t h = 0; h < run->size[1]; h++) {
        const int64_t at = h * tokens * D;
        scores<<<dim3(across, across), dim3(SQUARE, SQUARE), 0, stream(run)>>>(
            buffer<const float>(run, 0) + at, buffer<const float>(run, 1) + at, s, tokens);
        softmax<<<(unsigned)tokens, 256, 0, stream(run)>>>(s, tokens);
        weigh<<<dim3(D / SQUARE, across), dim3(SQUARE, SQUARE), 0, stream(run)>>>(s, buffer<const float>(run, 2) + at,
                                                                                  buffer<float>(run, 3) + at, tokens);
    }
    return cudaGetLastError();
}

LAB_LAUNCHER(gck_attention_online) {
    const int shared = (3 * KEYS * ROW + QUERIES * P_ROW) * (int)sizeof(float);
    cudaError_t err = cudaFuncSetAttribute(online, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (err)
        return err;
    online<<<dim3(ceil_div(run->size[0], QUERIES), (unsigned)run->size[1]), SIDE * SIDE, shared, stream(run)>>>(
        buffer<const float>(run, 0), buffer<const float>(run, 1), buffer<const float>(run, 2), buffer<float>(run, 3),
        run->size[0]);
    return cudaGetLastError();
}
