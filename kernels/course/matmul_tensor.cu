/*
 * The matrix product on tensor cores through WMMA: a warp holds fragments of A, B and C, tiles of 16 x 16 spread over
 * its lanes in an order that only the hardware knows, and multiplies them in one call.
 *
 * A block of four warps makes 128 x 128 of C, a warp 64 x 64; two blocks share a multiprocessor, so that one multiplies
 * while the other waits at its barrier. Tiles of A and B are copied asynchronously, STAGES of them under way. Their
 * rows in shared memory are padded, so that the rows which a warp reads at once begin in different banks.
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

struct half_case {
    typedef half element, fragment;
    enum { STEP = 16, STAGES = 4 };
};

struct bfloat_case {
    typedef __nv_bfloat16 element, fragment;
    enum { STEP = 16, STAGES = 4 };
};

struct tf32_case {
    typedef float element;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    typedef wmma::precision::tf32 fragment;
#endif
    enum { STEP = 8, STAGES = 3 };
};

template <typename Case> struct layout {
    typedef typename Case::element element;
    enum {
        QUAD = 16 / sizeof(element),
        A_ROW = TILE_K + QUAD,
        B_ROW = TILE_N + 8,
        A_SIZE = TILE_M * A_ROW,
        STAGE = A_SIZE + TILE_K * B_ROW,
        PATCH = 16 * 20, /* floats: one tile of C on its way to an edge */
        BYTES = STAGE * Case::STAGES * sizeof(element)
    };
};

#if __CUDA_ARCH__ >= 800

template <typename Fragment> __device__ __forceinline__ void round_inputs(Fragment &) {}

template <typename Use>
__device__ __forceinline__ void
round_inputs(wmma::fragment<Use, 16, 16, 8, wmma::precision::tf32, wmma::row_major> &f) {
#pragma unroll
    for (int i = 0; i < f.num_elements; i++)
        f.x[i] = wmma::__float_to_tf32(f.x[i]);
}

#endif

template <typename Case, bool QUADS>
__global__ void __launch_bounds__(THREADS, 2)
    product(const typename Case::element *a, const typename Case::element *b, float *c, product_size s) {
#if __CUDA_ARCH__ >= 800
    typedef typename Case::element T;
    typedef layout<Case> L;
    enum { STEP = Case::STEP, STAGES = Case::STAGES };
    enum { FM = WARP_M / 16, FN = WARP_N / 16 };
    extern __shared__ __align__(128) unsigned char memory[];
    T *stages = reinterpret_cast<T *>(memory);
    const tile_place place = tile_of(blockIdx.x, s, TILE_M, TILE_N);
    const int warp = threadIdx.x / 32, row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;
    wmma::fragment<wmma::accumulator, 16, 16, STEP, float> sum[FM][FN];
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);

    tile_fetcher<T, QUADS, TILE_M, TILE_K, L::A_ROW, THREADS> of_a(a, s.m, s.k, place.m, 0);
    tile_fetcher<T, QUADS, TILE_K, TILE_N, L::B_ROW, THREADS> of_b(b, s.k, s.n, 0, place.n);
    int left = (int)s.k; /* of K, not yet asked for */
    auto fetch = [&](T *stage) {
        if (left > 0) {
            of_a.copy(stage, s.k);
            of_b.copy(stage + L::A_SIZE, s.n);
            of_a.right(TILE_K);
            of_b.down(TILE_K, s.n);
            left -= TILE_K;
        }
        copy_group();
    };
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++)
        fetch(stages + i * L::STAGE);
    int now = 0, then = (STAGES - 1) * L::STAGE; /* where the stage in use lies, and the one to be filled */
    for (int steps = (int)((s.k + TILE_K - 1) / TILE_K); steps > 0; steps--) {
        copy_wait<STAGES - 2>(); /* this stage is here, and everyone has done with the one that is filled anew */
        __syncthreads();
        fetch(stages + then);
        then = now;
        const T *as = stages + now + row * L::A_ROW, *bs = stages + now + L::A_SIZE + column;
        now = now + L::STAGE < STAGES * L::STAGE ? now + L::STAGE : 0;
#pragma unroll
        for (int k = 0; k < TILE_K; k += STEP) {
            wmma::fragment<wmma::matrix_a, 16, 16, STEP, typename Case::fragment, wmma::row_major> x[FM];
            wmma::fragment<wmma::matrix_b, 16, 16, STEP, typename Case::fragment, wmma::row_major> y[FN];
#pragma unroll
            for (int r = 0; r < FM; r++) {
                wmma::load_matrix_sync(x[r], as + r * 16 * L::A_ROW + k, L::A_ROW);
                round_inputs(x[r]);
            }
#pragma unroll
            for (int q = 0; q < FN; q++) {
                wmma::load_matrix_sync(y[q], bs + k * L::B_ROW + q * 16, L::B_ROW);
                round_inputs(y[q]);
            }
#pragma unroll
            for (int r = 0; r < FM; r++)
#pragma unroll
                for (int q = 0; q < FN; q++)
                    wmma::mma_sync(sum[r][q], x[r], y[q], sum[r][q]);
        }
    }
    /* A tile that lies inside is stored as it is; one at an edge goes through a patch of shared memory, which the last
     * tiles of A and B must have left. */
    const bool inside = place.m + TILE_M <= s.m && place.n + TILE_N <= s.n && s.n % 8 == 0;
    copy_wait<0>();
    __syncthreads();
    float *patch = reinterpret_cast<float *>(memory) + warp * L::PATCH;
#pragma unroll
    for (int r = 0; r < FM; r++)
#pragma unroll
        for (int q = 0; q < FN; q++) {
            int64_t m = place.m + row + r * 16, n = place.n + column + q * 16;
            if (inside) {
                wmma::store_matrix_sync(c + m * s.n + n, sum[r][q], (unsigned)s.n, wmma::mem_row_major);
                continue;
            }
            wmma::store_matrix_sync(patch, sum[r][q], 20, wmma::mem_row_major);
            __syncwarp();
            for (int e = threadIdx.x % 32; e < 256; e += 32)
                if (m + e / 16 < s.m && n + e % 16 < s.n)
                    c[(m + e / 16) * s.n + n + e % 16] = patch[e / 16 * 20 + e % 16];
            __syncwarp();
        }
#endif
}

template <typename Case> int launch(const gc_lab_run *run) {
    typedef typename Case::element T;
    if (run->capability < 80)
        return LAB_CANNOT;
    product_size s = size_of(run);
    bool quads = s.n % layout<Case>::QUAD == 0 && s.k % layout<Case>::QUAD == 0;
    auto kernel = quads ? product<Case, true> : product<Case, false>;
    cudaError_t err =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)layout<Case>::BYTES);
    if (err)
        return err;
    unsigned tiles = ceil_div(s.m, TILE_M) * ceil_div(s.n, TILE_N);
    kernel<<<tiles, THREADS, layout<Case>::BYTES, stream(run)>>>(buffer<const T>(run, 0), buffer<const T>(run, 1),
                                                                 buffer<float>(run, 2), s);
    return cudaGetLastError();
}

} // namespace

LAB_LAUNCHER(gck_matmul_wmma_f16) {
    return launch<half_case>(run);
}

LAB_LAUNCHER(gck_matmul_wmma_bf16) {
    return launch<bfloat_case>(run);
}

LAB_LAUNCHER(gck_matmul_wmma_tf32) {
    return launch<tf32_case>(run);
}
