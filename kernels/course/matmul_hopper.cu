/*
 * The matrix product with Hopper's own instructions, for sm_90a: C = A B, row-major, half-precision inputs, float sums.
 *
 * A block has three warpgroups. One thread of the first only loads tiles, 128 x 64 of A and 64 x 256 of B, with the
 * tensor memory accelerator, into STAGES stages of shared memory. The other two warpgroups multiply 64 x 256 elements
 * each, with operands in shared memory; they get the registers that the first does not need.
 *
 *      load: wait until a stage is empty -> expect its bytes -> load        multiply: wait until it is full -> wgmma
 *                  ^                                                                    |
 *                  +------------- empty: all eight multiplying warps have arrived ------+
 *
 * With PAIR, a cluster of two blocks computes 256 x 256 elements: each block loads its own tile of A and half of their
 * common tile of B, and this half is copied to both blocks. A stage is therefore empty only when the warps of both
 * blocks have arrived, and each warp arrives at the barriers of both.
 *
 * The grid is persistent: each block computes one tile after another, and the loading thread already loads the next
 * tile while the last one is stored.
 */
#include "course.cuh"
#include "kernels/device/tma.cuh"
#include "kernels/device/wgmma.cuh"
#include "matmul.cuh"

#include <cuda_fp16.h>

using namespace course;

LAB_LAUNCHER(gck_matmul_wmma_f16);

namespace {

enum { TILE_M = 128, TILE_N = 256, TILE_K = 64, STAGES = 4, THREADS = 384, MULTIPLYING_WARPS = 8 };
enum { A_BYTES = TILE_M * TILE_K * 2, B_PIECE = TILE_K * 64 * 2, B_PIECES = TILE_N / 64, B_BYTES = B_PIECES * B_PIECE };
enum { STAGE_BYTES = A_BYTES + B_BYTES, SWIZZLE = 1024, SHARED = STAGES * STAGE_BYTES + SWIZZLE };

struct stage_ring {
    unsigned stages, full, empty; /* addresses of the tiles, and of barriers that are eight bytes apart */
    int stage = 0;
    unsigned parity = 0;

    __device__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <bool PAIR>
__device__ void load_tiles(stage_ring r, const CUtensorMap *a, const CUtensorMap *b, product_size s, unsigned tiles,
                           unsigned rank) {
    const unsigned first_tile = PAIR ? blockIdx.x / 2 : blockIdx.x, tile_step = PAIR ? gridDim.x / 2 : gridDim.x;
    for (unsigned tile = first_tile; tile < tiles; tile += tile_step) {
        const tile_origin origin = tile_origin_of(tile, s, PAIR ? 2 * TILE_M : TILE_M, TILE_N);
        const int m = (int)origin.m + (int)rank * TILE_M, n = (int)origin.n;
        for (int k = 0; k < s.k; k += TILE_K, r.advance()) {
            const unsigned to = r.stages + r.stage * STAGE_BYTES, full = r.full + 8 * r.stage;
            tma::wait(r.empty + 8 * r.stage, r.parity ^ 1); /* the phase before the first counts as complete */
            tma::expect(full, STAGE_BYTES);
            tma::fetch(to, a, k, m, full);
#pragma unroll
            for (int p = 0; p < (PAIR ? B_PIECES / 2 : B_PIECES); p++) {
                const int piece = PAIR ? (int)rank * B_PIECES / 2 + p : p;
                const unsigned dst = to + A_BYTES + piece * B_PIECE;
                if (PAIR)
                    tma::fetch_to_all(dst, b, n + piece * 64, k, full, 3);
                else
                    tma::fetch(dst, b, n + piece * 64, k, full);
            }
        }
    }
}

template <bool PAIR>
__device__ void multiply_tiles(stage_ring r, float *c, product_size s, unsigned tiles, unsigned rank) {
    const unsigned first_tile = PAIR ? blockIdx.x / 2 : blockIdx.x, tile_step = PAIR ? gridDim.x / 2 : gridDim.x;
    const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    auto release = [&](int stage) {
        if (lane == 0) {
            if (PAIR) {
                tma::arrive_at(r.empty + 8 * stage, 0);
                tma::arrive_at(r.empty + 8 * stage, 1);
            } else {
                tma::arrive(r.empty + 8 * stage);
            }
        }
    };
    for (unsigned tile = first_tile; tile < tiles; tile += tile_step) {
        const tile_origin origin = tile_origin_of(tile, s, PAIR ? 2 * TILE_M : TILE_M, TILE_N);
        float sum[128];
        int previous_stage = -1; /* the stage whose products may still be in flight */
        for (int64_t k = 0; k < s.k; k += TILE_K, r.advance()) {
            tma::wait(r.full + 8 * r.stage, r.parity);
            const unsigned a = r.stages + r.stage * STAGE_BYTES + group * 64 * TILE_K * 2;
            const unsigned b = r.stages + r.stage * STAGE_BYTES + A_BYTES;
            wgmma::touch(sum);
            wgmma::fence();
#pragma unroll
            for (int q = 0; q < TILE_K / 16; q++)
                wgmma::multiply_256_down(sum, wgmma::along(a + q * 32), wgmma::down(b + q * 16 * 128, B_PIECE),
                                         k > 0 || q > 0);
            wgmma::commit();
            wgmma::wait<1>(); /* the products of the previous stage are complete */
            if (previous_stage >= 0)
                release(previous_stage);
            previous_stage = r.stage;
        }
        wgmma::wait<0>();
        wgmma::touch(sum);
        release(previous_stage);
        const int64_t m = origin.m + (int64_t)rank * TILE_M + group * 64 + warp * 16 + lane / 4;
        const int64_t n = origin.n + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < TILE_N / 8; j++)
            if (n + 8 * j < s.n) {
                float *at = c + m * s.n + n + 8 * j;
                if (m < s.m)
                    *(float2 *)at = make_float2(sum[4 * j], sum[4 * j + 1]);
                if (m + 8 < s.m)
                    *(float2 *)(at + 8 * s.n) = make_float2(sum[4 * j + 2], sum[4 * j + 3]);
            }
    }
}

template <bool PAIR>
__global__ void __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, product_size s,
            unsigned tiles) {
    extern __shared__ unsigned char memory[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    stage_ring r;
    r.stages = (tma::address(memory) + SWIZZLE - 1) / SWIZZLE * SWIZZLE;
    r.full = tma::address(full);
    r.empty = tma::address(empty);
    const unsigned rank = PAIR ? tma::cluster_rank() : 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            tma::barrier_new(r.full + 8 * i, 1);
            tma::barrier_new(r.empty + 8 * i, PAIR ? 2 * MULTIPLYING_WARPS : MULTIPLYING_WARPS);
        }
        tma::barriers_made();
    }
    if (PAIR)
        tma::cluster_wait();
    else
        __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            load_tiles<PAIR>(r, &a, &b, s, tiles, rank);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_tiles<PAIR>(r, c, s, tiles, rank);
    }
    if (PAIR) /* a block must not exit while the other may still write to its shared memory */
        tma::cluster_wait();
}

template <bool PAIR> int launch(const gc_lab_run *run) {
    if (run->capability != 90)
        return LAB_CANNOT;
    product_size s = product_size_of(run);
    if (s.n % 8 || s.k % 8) /* a row must begin at a multiple of 16 bytes; WMMA computes other sizes */
        return gck_matmul_wmma_f16(run);
    CUtensorMap a, b;
    const cuuint64_t size_a[2] = {(cuuint64_t)s.k, (cuuint64_t)s.m}, row_a = (cuuint64_t)s.k * 2;
    const cuuint64_t size_b[2] = {(cuuint64_t)s.n, (cuuint64_t)s.k}, row_b = (cuuint64_t)s.n * 2;
    const cuuint32_t box_a[2] = {TILE_K, TILE_M}, box_b[2] = {64, TILE_K};
    int err = tma::describe(&a, run->buffer[0], 2, size_a, &row_a, box_a);
    if (!err)
        err = tma::describe(&b, run->buffer[1], 2, size_b, &row_b, box_b);
    if (!err)
        err = cudaFuncSetAttribute(product<PAIR>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (err)
        return err;
    const unsigned tiles = ceil_div(s.m, PAIR ? 2 * TILE_M : TILE_M) * ceil_div(s.n, TILE_N);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = 2;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.blockDim = THREADS;
    config.dynamicSmemBytes = SHARED;
    config.stream = stream(run);
    config.attrs = &cluster;
    config.numAttrs = PAIR ? 1 : 0;
    /* As many blocks as are resident at a time. For pairs the occupancy is queried, because some groups of
     * multiprocessors have an odd number of them, and one remains unused. */
    int pairs = 0;
    config.gridDim = PAIR ? 2 : 1;
    if (PAIR)
        err = cudaOccupancyMaxActiveClusters(&pairs, product<PAIR>, &config);
    if (err)
        return err;
    const unsigned resident_blocks = PAIR ? 2 * (unsigned)pairs : (unsigned)run->multiprocessors,
                   needed_blocks = PAIR ? 2 * tiles : tiles;
    config.gridDim = resident_blocks < needed_blocks ? resident_blocks : needed_blocks;
    return cudaLaunchKernelEx(&config, product<PAIR>, a, b, buffer<float>(run, 2), s, tiles);
}

} // namespace

LAB_LAUNCHER(gck_matmul_wgmma) {
    return launch<false>(run);
}

LAB_LAUNCHER(gck_matmul_wgmma_pair) {
    return launch<true>(run);
}
