/*
 * The matrix product on tensor cores through WMMA: a warp holds fragments of A, B and C and multiplies them with one
 * call. A fragment is a tile of 16 x 16 (for tf32 16 x 8 and 8 x 16), spread over the lanes of the warp in an order
 * that is not documented.
 *
 * A block of four warps computes 128 x 128 elements of C, and a warp 64 x 64; two blocks share a multiprocessor, so
 * that one multiplies while the other waits at its barrier. Tiles of A and B are copied asynchronously through STAGES
 * stages of shared memory. Their rows there are padded, so that the rows that a warp reads at a time begin in different
 * banks.
 */
#include "course.cuh"
#include "matmul.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace course;
using namespace nvcuda;

namespace {

enum { THREADS = 128, TILE_M = 128, TILE_N = 128, TILE_K = 32, WARP_M = 64, WARP_N = 64, WARPS_N = 2 };

struct half_format {
    typedef half element, fragment;
    enum { STEP = 16, STAGES = 4 };
};

struct bfloat_format {
    typedef __nv_bfloat16 element, fragment;
    enum { STEP = 16, STAGES = 4 };
};

struct tf32_format {
    typedef float element;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef wmma::precision::tf32 fragment;
#endif
    enum { STEP = 8, STAGES = 3 };
};

template <typename Format> struct layout {
    typedef typename Format::element element;
    enum {
        VECTOR = 16 / sizeof(element),
        A_STRIDE = TILE_K + VECTOR,
        B_STRIDE = TILE_N + 8,
        A_SIZE = TILE_M * A_STRIDE,
        STAGE = A_SIZE + TILE_K * B_STRIDE,
        PATCH = 16 * 20, /* floats: one tile of C at an edge, before it is stored */
        BYTES = STAGE * Format::STAGES * sizeof(element)
    };
};

#if __CUDA_ARCH__ >= 800

/* Rounds the inputs to tf32; other formats need no rounding. */
template <typename Fragment> __device__ __forceinline__ void round_inputs(Fragment &) {}

template <typename Use>
__device__ __forceinline__ void
round_inputs(wmma::fragment<Use, 16, 16, 8, wmma::precision::tf32, wmma::row_major> &f) {
#pragma unroll
    for (int i = 0; i < f.num_elements; i++)
        f.x[i] = wmma::__float_to_tf32(f.x[i]);
}

#endif

#if __CUDA_ARCH__ >= 800

enum { FRAGMENTS_M = WARP_M / 16, FRAGMENTS_N = WARP_N / 16 };

template <typename Format>
using warp_sums = wmma::fragment<wmma::accumulator, 16, 16, Format::STEP, float>[FRAGMENTS_M][FRAGMENTS_N];

/* Stores the fragment whose first element is (m, n). If the block's tile is `inside` C, the fragment is stored
 * directly; otherwise it goes through `patch` in shared memory, and the elements inside C are stored one by one. */
template <typename Format>
__device__ __forceinline__ void store_fragment(float *c, product_size s, int64_t m, int64_t n, bool inside,
                                               wmma::fragment<wmma::accumulator, 16, 16, Format::STEP, float> &sum,
                                               float *patch) {
    if (inside) {
        wmma::store_matrix_sync(c + m * s.n + n, sum, (unsigned)s.n, wmma::mem_row_major);
        return;
    }
    wmma::store_matrix_sync(patch, sum, 20, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x % 32; e < 256; e += 32)
        if (m + e / 16 < s.m && n + e % 16 < s.n)
            c[(m + e / 16) * s.n + n + e % 16] = patch[e / 16 * 20 + e % 16];
    __syncwarp();
}
#endif

/* The multiplication is not split into functions: the compiler would allocate registers differently. */
template <typename Format, bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2)
    product(const typename Format::element *a, const typename Format::element *b, float *c, product_size s) {
#if __CUDA_ARCH__ >= 800
    typedef typename Format::element T;
    typedef layout<Format> L;
    enum { STEP = Format::STEP, STAGES = Format::STAGES };
    extern __shared__ __align__(128) unsigned char memory[];
    T *stages = reinterpret_cast<T *>(memory);
    const tile_origin origin = tile_origin_of(blockIdx.x, s, TILE_M, TILE_N);
    const int warp = threadIdx.x / 32, row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;
    wmma::fragment<wmma::accumulator, 16, 16, STEP, float> sum[FRAGMENTS_M][FRAGMENTS_N];
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++)
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);

    tile_loader<T, ALIGNED, TILE_M, TILE_K, L::A_STRIDE, THREADS> a_loader(a, s.m, s.k, origin.m, 0);
    tile_loader<T, ALIGNED, TILE_K, TILE_N, L::B_STRIDE, THREADS> b_loader(b, s.k, s.n, 0, origin.n);
    int k_remaining = (int)s.k; /* of K, for which no copy has been started */
    auto start_copies = [&](T *stage) {
        if (k_remaining > 0) {
            a_loader.copy(stage, s.k);
            b_loader.copy(stage + L::A_SIZE, s.n);
            a_loader.advance_columns(TILE_K);
            b_loader.advance_rows(TILE_K, s.n);
            k_remaining -= TILE_K;
        }
        copy_group();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        start_copies(stages + i * L::STAGE);
    /* offsets of the stage in use and of the stage to be filled */
    int read_stage = 0, write_stage = (STAGES - 1) * L::STAGE;
    for (int k_tiles = (int)((s.k + TILE_K - 1) / TILE_K); k_tiles > 0; k_tiles--) {
        copy_wait<STAGES - 2>(); /* this stage is complete, and all warps have finished with the one to be filled */
        __syncthreads();
        start_copies(stages + write_stage);
        write_stage = read_stage;
        const T *as = stages + read_stage + row * L::A_STRIDE, *bs = stages + read_stage + L::A_SIZE + column;
        read_stage = read_stage + L::STAGE < STAGES * L::STAGE ? read_stage + L::STAGE : 0;
#pragma unroll
        for (int k = 0; k < TILE_K; k += STEP) {
            wmma::fragment<wmma::matrix_a, 16, 16, STEP, typename Format::fragment, wmma::row_major> x[FRAGMENTS_M];
            wmma::fragment<wmma::matrix_b, 16, 16, STEP, typename Format::fragment, wmma::row_major> y[FRAGMENTS_N];
#pragma unroll
            for (int r = 0; r < FRAGMENTS_M; r++) {
                wmma::load_matrix_sync(x[r], as + r * 16 * L::A_STRIDE + k, L::A_STRIDE);
                round_inputs(x[r]);
            }
#pragma unroll
            for (int q = 0; q < FRAGMENTS_N; q++) {
                wmma::load_matrix_sync(y[q], bs + k * L::B_STRIDE + q * 16, L::B_STRIDE);
                round_inputs(y[q]);
            }
#pragma unroll
            for (int r = 0; r < FRAGMENTS_M; r++)
#pragma unroll
                for (int q = 0; q < FRAGMENTS_N; q++)
                    wmma::mma_sync(sum[r][q], x[r], y[q], sum[r][q]);
        }
    }
    /* The patch of a warp is in the memory of the stages, which is free once all copies have arrived and all warps have
     * finished with the stages. */
    const bool inside = origin.m + TILE_M <= s.m && origin.n + TILE_N <= s.n && s.n % 8 == 0;
    copy_wait<0>();
    __syncthreads();
    float *patch = reinterpret_cast<float *>(memory) + warp * L::PATCH;
#pragma unroll
    for (int r = 0; r < FRAGMENTS_M; r++)
#pragma unroll
        for (int q = 0; q < FRAGMENTS_N; q++) {
            int64_t m = origin.m + row + r * 16, n = origin.n + column + q * 16;
            store_fragment<Format>(c, s, m, n, inside, sum[r][q], patch);
        }
#endif
}

template <typename Format> int launch(const gc_lab_run *run) {
    typedef typename Format::element T;
    if (run->capability < 80)
        return LAB_CANNOT;
    product_size s = product_size_of(run);
    bool aligned = s.n % layout<Format>::VECTOR == 0 && s.k % layout<Format>::VECTOR == 0;
    auto kernel = aligned ? product<Format, true> : product<Format, false>;
    cudaError_t err =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)layout<Format>::BYTES);
    if (err)
        return err;
    unsigned tiles = ceil_div(s.m, TILE_M) * ceil_div(s.n, TILE_N);
    kernel<<<tiles, THREADS, layout<Format>::BYTES, stream(run)>>>(buffer<const T>(run, 0), buffer<const T>(run, 1),
                                                                   buffer<float>(run, 2), s);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_matmul_wmma_f16) {
    return launch<half_format>(run);
}

LAB_LAUNCHER(gck_matmul_wmma_bf16) {
    return launch<bfloat_format>(run);
}

LAB_LAUNCHER(gck_matmul_wmma_tf32) {
    return launch<tf32_format>(run);
}
