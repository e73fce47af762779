/*
 * The kernels of module matmul in single precision: c[m][n] = sum over k of a[m][k] b[k][n], row-major.
 *
 * The register-tiled kernel: a block computes 128 x 128 elements of C from tiles of 128 x 16 of A and 16 x 128 of B,
 * which are copied asynchronously through STAGES stages of shared memory. Each of its four warps computes 32 x 128
 * elements; a lane computes the rows 4 (lane / 8) + 16 i + 0..3 and the columns 4 (lane % 8) + 32 j + 0..3. It loads
 * the operands of the next k while it multiplies those of the present k, also across the end of a tile. A is stored
 * transposed in shared memory, so that one load reads four rows. Its rows there are 132 floats apart, so that the eight
 * k and four m that a warp copies at a time are in 32 different banks.
 */
#include "course.cuh"
#include "matmul.cuh"

using namespace course;

namespace {

enum { BLOCK_SIDE = 16, COARSENING = 4, SQUARE_TILE = 32 };

__global__ void __launch_bounds__(1024) one_block(const float *a, const float *b, float *c, product_size s) {
    for (int64_t m = threadIdx.y; m < s.m; m += blockDim.y)
        for (int64_t n = threadIdx.x; n < s.n; n += blockDim.x) {
            float sum = 0.0f;
            for (int64_t k = 0; k < s.k; k++)
                sum = fmaf(a[m * s.k + k], b[k * s.n + n], sum);
            c[m * s.n + n] = sum;
        }
}

/* Computes COARSENING x COARSENING elements whose rows and columns are `spacing` apart, the width of the block, so that
 * neighbouring threads still access neighbouring elements. */
__device__ void compute_elements(const float *a, const float *b, float *c, product_size s, int64_t m0, int64_t n0,
                                 int spacing) {
    float sum[COARSENING][COARSENING] = {};
    for (int64_t k = 0; k < s.k; k++) {
        float x[COARSENING], y[COARSENING];
#pragma unroll
        for (int i = 0; i < COARSENING; i++) {
            int64_t m = m0 + i * spacing, n = n0 + i * spacing;
            x[i] = m < s.m ? a[m * s.k + k] : 0.0f;
            y[i] = n < s.n ? b[k * s.n + n] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < COARSENING; i++)
#pragma unroll
            for (int j = 0; j < COARSENING; j++)
                sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
#pragma unroll
    for (int i = 0; i < COARSENING; i++)
#pragma unroll
        for (int j = 0; j < COARSENING; j++)
            if (m0 + i * spacing < s.m && n0 + j * spacing < s.n)
                c[(m0 + i * spacing) * s.n + n0 + j * spacing] = sum[i][j];
}

__global__ void __launch_bounds__(1024) one_block_coarse(const float *a, const float *b, float *c, product_size s) {
    for (int64_t m = 0; m < s.m; m += SQUARE_TILE * COARSENING)
        for (int64_t n = 0; n < s.n; n += SQUARE_TILE * COARSENING)
            compute_elements(a, b, c, s, m + threadIdx.y, n + threadIdx.x, SQUARE_TILE);
}

__global__ void __launch_bounds__(BLOCK_SIDE *BLOCK_SIDE)
    naive(const float *a, const float *b, float *c, product_size s) {
    int64_t m = (int64_t)blockIdx.y * BLOCK_SIDE + threadIdx.y, n = (int64_t)blockIdx.x * BLOCK_SIDE + threadIdx.x;
    if (m >= s.m || n >= s.n)
        return;
    float sum = 0.0f;
    for (int64_t k = 0; k < s.k; k++)
        sum = fmaf(a[m * s.k + k], b[k * s.n + n], sum);
    c[m * s.n + n] = sum;
}

__global__ void __launch_bounds__(BLOCK_SIDE *BLOCK_SIDE)
    coarse(const float *a, const float *b, float *c, product_size s) {
    compute_elements(a, b, c, s, (int64_t)blockIdx.y * BLOCK_SIDE * COARSENING + threadIdx.y,
                     (int64_t)blockIdx.x * BLOCK_SIDE * COARSENING + threadIdx.x, BLOCK_SIDE);
}

__global__ void __launch_bounds__(SQUARE_TILE *SQUARE_TILE)
    tiled(const float *a, const float *b, float *c, product_size s) {
    __shared__ float as[SQUARE_TILE][SQUARE_TILE], bs[SQUARE_TILE][SQUARE_TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int64_t m = (int64_t)blockIdx.y * SQUARE_TILE + y, n = (int64_t)blockIdx.x * SQUARE_TILE + x;
    float sum = 0.0f;
    for (int64_t k0 = 0; k0 < s.k; k0 += SQUARE_TILE) {
        as[y][x] = m < s.m && k0 + x < s.k ? a[m * s.k + k0 + x] : 0.0f;
        bs[y][x] = n < s.n && k0 + y < s.k ? b[(k0 + y) * s.n + n] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SQUARE_TILE; k++)
            sum = fmaf(as[y][k], bs[k][x], sum);
        __syncthreads();
    }
    if (m < s.m && n < s.n)
        c[m * s.n + n] = sum;
}

/* ---- Register tiles ---------------------------------------------------------------------------------------------- */

enum { TILE_M = 128, TILE_N = 128, TILE_K = 16, THREADS = 128, STAGES = 4, A_STRIDE = TILE_M + 4 };
enum { A_FLOATS = TILE_K * A_STRIDE, B_FLOATS = TILE_K * TILE_N, STAGE_FLOATS = A_FLOATS + B_FLOATS };
enum { ROW_VECTORS = 2, COLUMN_VECTORS = 4 };         /* float4 operands of a thread */
enum { A_COPY_K = 8, A_COPY_M = THREADS / A_COPY_K }; /* the elements of A that the block copies at a time */

/* Loads N vectors of four floats, STEP floats apart. */
template <int STEP, int N> __device__ __forceinline__ void load_vectors(float4 (&dst)[N], const float *src) {
#pragma unroll
    for (int i = 0; i < N; i++)
        dst[i] = *(const float4 *)(src + STEP * i);
}

typedef float thread_sums[4 * ROW_VECTORS][4 * COLUMN_VECTORS];

/* Adds the products of one k. Every second row goes in the other direction, so that the last operand is reused first.
 */
__device__ __forceinline__ void multiply_add(thread_sums &sum, const float4 (&x)[ROW_VECTORS],
                                             const float4 (&y)[COLUMN_VECTORS]) {
#pragma unroll
    for (int i = 0; i < 4 * ROW_VECTORS; i++)
#pragma unroll
        for (int q = 0; q < 4 * COLUMN_VECTORS; q++) {
            int j = i % 2 ? 4 * COLUMN_VECTORS - 1 - q : q;
            sum[i][j] = fmaf(((const float *)x)[i], ((const float *)y)[j], sum[i][j]);
        }
}

/* Stores the sums of the lane whose first element is (m0, n0). */
template <bool ALIGNED>
__device__ __forceinline__ void store_sums(float *c, product_size s, int64_t m0, int64_t n0, const thread_sums &sum) {
#pragma unroll
    for (int i = 0; i < 4 * ROW_VECTORS; i++)
#pragma unroll
        for (int j = 0; j < 4 * COLUMN_VECTORS; j += 4) {
            int64_t m = m0 + i / 4 * 16 + i % 4, n = n0 + 8 * j;
            if (m >= s.m)
                continue;
            if (ALIGNED && n < s.n)
                *(float4 *)(c + m * s.n + n) = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            for (int q = 0; !ALIGNED && q < 4; q++)
                if (n + q < s.n)
                    c[m * s.n + n + q] = sum[i][j + q];
        }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2) registers(const float *a, const float *b, float *c, product_size s) {
    extern __shared__ __align__(16) float stages[];
    const tile_origin origin = tile_origin_of(blockIdx.x, s, TILE_M, TILE_N);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp * 32 + lane / 8 * 4, column = lane % 8 * 4;
    const int a_k = threadIdx.x % A_COPY_K, a_m = threadIdx.x / A_COPY_K, rows_remaining = (int)(s.m - origin.m) - a_m;
    const float *a_src = a + (origin.m + a_m) * s.k + a_k;
    tile_loader<float, ALIGNED, TILE_K, TILE_N, TILE_N, THREADS> b_loader(b, s.k, s.n, 0, origin.n);
    int k_remaining = (int)s.k; /* of K, for which no copy has been started */
    auto start_copies = [&](float *stage) {
        if (k_remaining > 0) {
#pragma unroll
            for (int k = 0; k < TILE_K; k += A_COPY_K)
#pragma unroll
                for (int m = 0; m < TILE_M; m += A_COPY_M) {
                    bool inside = rows_remaining > m && k_remaining > k + a_k;
                    copy_async<4>(stage + (k + a_k) * A_STRIDE + m + a_m, inside ? a_src + m * s.k + k : a, inside);
                }
            b_loader.copy(stage + A_FLOATS, s.n);
            a_src += TILE_K;
            b_loader.advance_rows(TILE_K, s.n);
            k_remaining -= TILE_K;
        }
        copy_group();
    };
    thread_sums sum = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        start_copies(stages + i * STAGE_FLOATS);
    /* offsets of the stage in use and of the stage to be filled */
    int read_stage = 0, write_stage = (STAGES - 1) * STAGE_FLOATS;
    float4 x[2][ROW_VECTORS], y[2][COLUMN_VECTORS]; /* the operands of the present k and of the next */
    auto load = [&](int slot, const float *stage, int k) {
        load_vectors<16>(x[slot], stage + k * A_STRIDE + row);
        load_vectors<32>(y[slot], stage + A_FLOATS + k * TILE_N + column);
    };
    copy_wait<STAGES - 2>();
    __syncthreads();
    load(0, stages, 0);
    for (int k_tiles = (int)((s.k + TILE_K - 1) / TILE_K); k_tiles > 0; k_tiles--) {
        start_copies(stages + write_stage);
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            if (k + 1 < TILE_K) {
                load((k + 1) % 2, stages + read_stage, k + 1);
            } else { /* wait for the next stage, and for all threads to have read this one */
                write_stage = read_stage;
                read_stage = read_stage + STAGE_FLOATS < STAGES * STAGE_FLOATS ? read_stage + STAGE_FLOATS : 0;
                copy_wait<STAGES - 2>();
                __syncthreads();
                load((k + 1) % 2, stages + read_stage, 0);
            }
            multiply_add(sum, x[k % 2], y[k % 2]);
        }
    }
    store_sums<ALIGNED>(c, s, origin.m + row, origin.n + column, sum);
}

typedef void product_kernel(const float *, const float *, float *, product_size);

int launch(product_kernel *k, dim3 grid, dim3 block, size_t shared, const gc_lab_run *run) {
    if (shared > 48 * 1024) {
        cudaError_t err = cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (err)
            return err;
    }
    k<<<grid, block, shared, stream(run)>>>(buffer<const float>(run, 0), buffer<const float>(run, 1),
                                            buffer<float>(run, 2), product_size_of(run));
    return cudaGetLastError();
}

dim3 tile_grid(const gc_lab_run *run, int tile) {
    return dim3(ceil_div(run->size[1], tile), ceil_div(run->size[0], tile));
}

} // namespace

LAB_LAUNCHER(gck_matmul_one_block) {
    return launch(one_block, 1, dim3(SQUARE_TILE, SQUARE_TILE), 0, run);
}

LAB_LAUNCHER(gck_matmul_one_block_coarse) {
    return launch(one_block_coarse, 1, dim3(SQUARE_TILE, SQUARE_TILE), 0, run);
}

LAB_LAUNCHER(gck_matmul_naive) {
    return launch(naive, tile_grid(run, BLOCK_SIDE), dim3(BLOCK_SIDE, BLOCK_SIDE), 0, run);
}

LAB_LAUNCHER(gck_matmul_coarse) {
    return launch(coarse, tile_grid(run, BLOCK_SIDE * COARSENING), dim3(BLOCK_SIDE, BLOCK_SIDE), 0, run);
}

LAB_LAUNCHER(gck_matmul_tiled) {
    return launch(tiled, tile_grid(run, SQUARE_TILE), dim3(SQUARE_TILE, SQUARE_TILE), 0, run);
}

LAB_LAUNCHER(gck_matmul_registers) {
    unsigned tiles = ceil_div(run->size[0], TILE_M) * ceil_div(run->size[1], TILE_N);
    bool aligned = run->size[1] % 4 == 0;
    return launch(aligned ? registers<true> : registers<false>, tiles, THREADS, sizeof(float) * STAGES * STAGE_FLOATS,
                  run);
}

LAB_FACTS(gck_matmul_registers_facts) {
    (void)run;
    return kernel_facts(registers<true>, THREADS, sizeof(float) * STAGES * STAGE_FLOATS, facts);
}
