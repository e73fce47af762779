/*
 * The matrix product on the GPU in single precision: c[m][n] = sum over k of a[m][k] b[k][n], row-major.
 *
 * The register-tiled kernel: a block makes 128 x 128 of C from tiles of 128 x 16 of A and 16 x 128 of B, which are
 * copied asynchronously, STAGES of them under way. Its four warps make 32 x 128 each; a lane has the rows 4 (lane / 8)
 * + 16 i + 0..3 and the columns 4 (lane % 8) + 32 j + 0..3, and loads the operands of the next k while it multiplies
 * those of this one, across the end of a tile too. A lies transposed in shared memory, so that four rows are one load;
 * its rows there are 132 floats apart: the eight k and four m that a warp copies at once fall into 32 different banks.
 */
#include "course.cuh"
#include "matmul.cuh"

using namespace course;

namespace {

enum { SIDE = 16, EACH = 4, SQUARE = 32 };

__global__ void __launch_bounds__(1024) one_block(const float *a, const float *b, float *c, product_size s) {
    for (int64_t m = threadIdx.y; m < s.m; m += blockDim.y)
        for (int64_t n = threadIdx.x; n < s.n; n += blockDim.x) {
            float sum = 0.0f;
            for (int64_t k = 0; k < s.k; k++)
                sum = fmaf(a[m * s.k + k], b[k * s.n + n], sum);
            c[m * s.n + n] = sum;
        }
}

/* EACH x EACH elements, their rows and columns apart by the width of the block: neighbours stay neighbours. */
__device__ void coarse_element(const float *a, const float *b, float *c, product_size s, int64_t m0, int64_t n0,
                               int apart) {
    float sum[EACH][EACH] = {};
    for (int64_t k = 0; k < s.k; k++) {
        float x[EACH], y[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int64_t m = m0 + i * apart, n = n0 + i * apart;
            x[i] = m < s.m ? a[m * s.k + k] : 0.0f;
            y[i] = n < s.n ? b[k * s.n + n] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (m0 + i * apart < s.m && n0 + j * apart < s.n)
                c[(m0 + i * apart) * s.n + n0 + j * apart] = sum[i][j];
}

__global__ void __launch_bounds__(1024) one_block_coarse(const float *a, const float *b, float *c, product_size s) {
    for (int64_t m = 0; m < s.m; m += SQUARE * EACH)
        for (int64_t n = 0; n < s.n; n += SQUARE * EACH)
            coarse_element(a, b, c, s, m + threadIdx.y, n + threadIdx.x, SQUARE);
}

__global__ void __launch_bounds__(SIDE *SIDE) naive(const float *a, const float *b, float *c, product_size s) {
    int64_t m = (int64_t)blockIdx.y * SIDE + threadIdx.y, n = (int64_t)blockIdx.x * SIDE + threadIdx.x;
    if (m >= s.m || n >= s.n)
        return;
    float sum = 0.0f;
    for (int64_t k = 0; k < s.k; k++)
        sum = fmaf(a[m * s.k + k], b[k * s.n + n], sum);
    c[m * s.n + n] = sum;
}

__global__ void __launch_bounds__(SIDE *SIDE) coarse(const float *a, const float *b, float *c, product_size s) {
    coarse_element(a, b, c, s, (int64_t)blockIdx.y * SIDE * EACH + threadIdx.y,
                   (int64_t)blockIdx.x * SIDE * EACH + threadIdx.x, SIDE);
}

__global__ void __launch_bounds__(SQUARE *SQUARE) tiled(const float *a, const float *b, float *c, product_size s) {
    __shared__ float as[SQUARE][SQUARE], bs[SQUARE][SQUARE];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t m = (int64_t)blockIdx.y * SQUARE + y, n = (int64_t)blockIdx.x * SQUARE + x;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < s.k; k0 += SQUARE) {
        as[y][x] = m < s.m && k0 + x < s.k ? a[m * s.k + k0 + x] : 0.0f;
        bs[y][x] = n < s.n && k0 + y < s.k ? b[(k0 + y) * s.n + n] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SQUARE; k++)
            sum = fmaf(as[y][k], bs[k][x], sum);
        __syncthreads();
    }
    if (m < s.m && n < s.n)
        c[m * s.n + n] = sum;
}

/* ---- Register tiles ---------------------------------------------------------------------------------------------- */

enum { TILE_M = 128, TILE_N = 128, TILE_K = 16, THREADS = 128, STAGES = 4, A_ROW = TILE_M + 4 };
enum { A_FLOATS = TILE_K * A_ROW, B_FLOATS = TILE_K * TILE_N, STAGE_FLOATS = A_FLOATS + B_FLOATS };
enum { ROW_QUADS = 2, COLUMN_QUADS = 4, ALONG = 8, DOWN = THREADS / ALONG }; /* A is copied by 8 of k x 16 of m */

/* Four floats each from N places STEP apart. */
template <int STEP, int N> __device__ __forceinline__ void load_quads(float4 (&to)[N], const float *from) {
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = *(const float4 *)(from + STEP * i);
}

template <bool QUADS>
__global__ void __launch_bounds__(THREADS, 2) registers(const float *a, const float *b, float *c, product_size s) {
    extern __shared__ __align__(16) float stages[];
    const tile_place place = tile_of(blockIdx.x, s, TILE_M, TILE_N);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp * 32 + lane / 8 * 4, column = lane % 8 * 4;
    const int a_k = threadIdx.x % ALONG, a_m = threadIdx.x / ALONG, rows_left = (int)(s.m - place.m) - a_m;
    const float *from_a = a + (place.m + a_m) * s.k + a_k;
    tile_fetcher<float, QUADS, TILE_K, TILE_N, TILE_N, THREADS> of_b(b, s.k, s.n, 0, place.n);
    int left = (int)s.k; /* of K, not yet asked for */
    auto fetch = [&](float *stage) {
        if (left > 0) {
#pragma unroll
            for (int k = 0; k < TILE_K; k += ALONG)
#pragma unroll
                for (int m = 0; m < TILE_M; m += DOWN) {
                    bool inside = rows_left > m && left > k + a_k;
                    copy_async<4>(stage + (k + a_k) * A_ROW + m + a_m, inside ? from_a + m * s.k + k : a, inside);
                }
            of_b.copy(stage + A_FLOATS, s.n);
            from_a += TILE_K;
            of_b.down(TILE_K, s.n);
            left -= TILE_K;
        }
        copy_group();
    };
    float sum[4 * ROW_QUADS][4 * COLUMN_QUADS] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        fetch(stages + i * STAGE_FLOATS);
    int now = 0, then = (STAGES - 1) * STAGE_FLOATS; /* where the stage in use lies, and the one to be filled */
    float4 x[2][ROW_QUADS], y[2][COLUMN_QUADS];      /* of this k and of the next */
    auto load = [&](int which, const float *stage, int k) {
        load_quads<16>(x[which], stage + k * A_ROW + row);
        load_quads<32>(y[which], stage + A_FLOATS + k * TILE_N + column);
    };
    copy_wait<STAGES - 2>();
    __syncthreads();
    load(0, stages, 0);
    for (int steps = (int)((s.k + TILE_K - 1) / TILE_K); steps > 0; steps--) {
        fetch(stages + then);
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            if (k + 1 < TILE_K) {
                load((k + 1) % 2, stages + now, k + 1);
            } else { /* the next stage is here, and everyone has read this one's last operands */
                then = now;
                now = now + STAGE_FLOATS < STAGES * STAGE_FLOATS ? now + STAGE_FLOATS : 0;
                copy_wait<STAGES - 2>();
                __syncthreads();
                load((k + 1) % 2, stages + now, 0);
            }
#pragma unroll
            for (int i = 0; i < 4 * ROW_QUADS; i++)
#pragma unroll
                for (int q = 0; q < 4 * COLUMN_QUADS; q++) { /* to and fro: the operand of a turn is at hand */
                    int j = i % 2 ? 4 * COLUMN_QUADS - 1 - q : q;
                    sum[i][j] = fmaf(((const float *)x[k % 2])[i], ((const float *)y[k % 2])[j], sum[i][j]);
                }
        }
    }
#pragma unroll
    for (int i = 0; i < 4 * ROW_QUADS; i++)
#pragma unroll
        for (int j = 0; j < 4 * COLUMN_QUADS; j += 4) {
            int64_t m = place.m + row + i / 4 * 16 + i % 4, n = place.n + column + 8 * j;
            if (m >= s.m)
                continue;
            if (QUADS && n < s.n)
                *(float4 *)(c + m * s.n + n) = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            for (int q = 0; !QUADS && q < 4; q++)
                if (n + q < s.n)
                    c[m * s.n + n + q] = sum[i][j + q];
        }
}

typedef void kernel(const float *, const float *, float *, product_size);

int launch(kernel *k, dim3 grid, dim3 block, size_t shared, const gc_lab_run *run) {
    if (shared > 48 * 1024) {
        cudaError_t err = cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (err)
            return err;
    }
    k<<<grid, block, shared, stream(run)>>>(buffer<const float>(run, 0), buffer<const float>(run, 1),
                                            buffer<float>(run, 2), size_of(run));
    return cudaGetLastError();
}

dim3 grid_of(const gc_lab_run *run, int tile) {
    return dim3(ceil_div(run->size[1], tile), ceil_div(run->size[0], tile));
}

} // namespace

LAB_LAUNCHER(gck_matmul_one_block) {
    return launch(one_block, 1, dim3(SQUARE, SQUARE), 0, run);
}

LAB_LAUNCHER(gck_matmul_one_block_coarse) {
    return launch(one_block_coarse, 1, dim3(SQUARE, SQUARE), 0, run);
}

LAB_LAUNCHER(gck_matmul_naive) {
    return launch(naive, grid_of(run, SIDE), dim3(SIDE, SIDE), 0, run);
}

LAB_LAUNCHER(gck_matmul_coarse) {
    return launch(coarse, grid_of(run, SIDE * EACH), dim3(SIDE, SIDE), 0, run);
}

LAB_LAUNCHER(gck_matmul_tiled) {
    return launch(tiled, grid_of(run, SQUARE), dim3(SQUARE, SQUARE), 0, run);
}

LAB_LAUNCHER(gck_matmul_registers) {
    unsigned tiles = ceil_div(run->size[0], TILE_M) * ceil_div(run->size[1], TILE_N);
    bool quads = run->size[1] % 4 == 0;
    return launch(quads ? registers<true> : registers<false>, tiles, THREADS, sizeof(float) * STAGES * STAGE_FLOATS,
                  run);
}

LAB_FACTS(gck_matmul_registers_facts) {
    (void)run;
    return kernel_facts(registers<true>, THREADS, sizeof(float) * STAGES * STAGE_FLOATS, facts);
}
