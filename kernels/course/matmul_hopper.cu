/*
 * The matrix product with Hopper's own instructions, for sm_90a: C = A B, row-major, half in, float sums.
 *
 * A block has three warpgroups. One thread of the first only fetches: tiles of 128 x 64 of A and 64 x 256 of B, through
 * the tensor memory accelerator, STAGES of them under way. The other two multiply, 64 x 256 each, straight out of
 * shared memory; they take over the registers that the first does not need.
 *
 *      fetch: wait until a stage is empty -> expect its bytes -> fetch      multiply: wait until it is full -> wgmma
 *                  ^                                                                    |
 *                  +------------- empty: all eight multiplying warps have arrived ------+
 *
 * With PAIR, two blocks make 256 x 256 together: each fetches its own tile of A and half of their tile of B, and the
 * half goes to both. So a stage is empty only when the warps of both blocks have arrived, and each arrives at both.
 *
 * Blocks stay: each makes one tile after another, and the fetching thread is already at the next one while the last
 * stores of this one are under way.
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
enum { A_BYTES = TILE_M * TILE_K * 2, PIECE = TILE_K * 64 * 2, PIECES = TILE_N / 64, B_BYTES = PIECES * PIECE };
enum { STAGE_BYTES = A_BYTES + B_BYTES, SWIZZLE = 1024, SHARED = STAGES * STAGE_BYTES + SWIZZLE };

struct ring {
    unsigned stages, full, empty; /* addresses: tiles, and barriers eight bytes apart */
    int stage = 0;
    unsigned parity = 0;

    __device__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <bool PAIR>
__device__ void fetch_all(ring r, const CUtensorMap *a, const CUtensorMap *b, product_size s, unsigned tiles,
                          unsigned rank) {
    const unsigned first = PAIR ? blockIdx.x / 2 : blockIdx.x, step = PAIR ? gridDim.x / 2 : gridDim.x;
    for (unsigned tile = first; tile < tiles; tile += step) {
        const tile_place place = tile_of(tile, s, PAIR ? 2 * TILE_M : TILE_M, TILE_N);
        const int m = (int)place.m + (int)rank * TILE_M, n = (int)place.n;
        for (int k = 0; k < s.k; k += TILE_K, r.next()) {
            const unsigned to = r.stages + r.stage * STAGE_BYTES, full = r.full + 8 * r.stage;
            tma::wait(r.empty + 8 * r.stage, r.parity ^ 1); /* a barrier's phase before the first counts as ended */
            tma::expect(full, STAGE_BYTES);
            tma::fetch(to, a, k, m, full);
#pragma unroll
            for (int p = 0; p < (PAIR ? PIECES / 2 : PIECES); p++) {
                const int piece = PAIR ? (int)rank * PIECES / 2 + p : p;
                const unsigned there = to + A_BYTES + piece * PIECE;
                if (PAIR)
                    tma::fetch_to_all(there, b, n + piece * 64, k, full, 3);
                else
                    tma::fetch(there, b, n + piece * 64, k, full);
            }
        }
    }
}

template <bool PAIR> __device__ void multiply_all(ring r, float *c, product_size s, unsigned tiles, unsigned rank) {
    const unsigned first = PAIR ? blockIdx.x / 2 : blockIdx.x, step = PAIR ? gridDim.x / 2 : gridDim.x;
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
    for (unsigned tile = first; tile < tiles; tile += step) {
        const tile_place place = tile_of(tile, s, PAIR ? 2 * TILE_M : TILE_M, TILE_N);
        float sum[128];
        int before = -1; /* the stage whose products may still be under way */
        for (int64_t k = 0; k < s.k; k += TILE_K, r.next()) {
            tma::wait(r.full + 8 * r.stage, r.parity);
            const unsigned a = r.stages + r.stage * STAGE_BYTES + group * 64 * TILE_K * 2;
            const unsigned b = r.stages + r.stage * STAGE_BYTES + A_BYTES;
            wgmma::touch(sum);
            wgmma::fence();
#pragma unroll
            for (int q = 0; q < TILE_K / 16; q++)
                wgmma::multiply_256_down(sum, wgmma::along(a + q * 32), wgmma::down(b + q * 16 * 128, PIECE),
                                         k > 0 || q > 0);
            wgmma::commit();
            wgmma::wait<1>(); /* the products of the stage before are done */
            if (before >= 0)
                release(before);
            before = r.stage;
        }
        wgmma::wait<0>();
        wgmma::touch(sum);
        release(before);
        const int64_t m = place.m + (int64_t)rank * TILE_M + group * 64 + warp * 16 + lane / 4;
        const int64_t n = place.n + lane % 4 * 2;
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
    ring r;
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
            fetch_all<PAIR>(r, &a, &b, s, tiles, rank);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_all<PAIR>(r, c, s, tiles, rank);
    }
    if (PAIR) /* nobody leaves while the other may still write to or arrive at what it owns */
        tma::cluster_wait();
}

template <bool PAIR> int launch(const gc_lab_run *run) {
    if (run->capability != 90)
        return LAB_CANNOT;
    product_size s = size_of(run);
    if (s.n % 8 || s.k % 8) /* rows must begin on 16 bytes: such sizes take the product that copies by element */
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
    /* As many blocks as run at the same time: some groups of multiprocessors have an odd number left for pairs. */
    int pairs = 0;
    config.gridDim = PAIR ? 2 : 1;
    if (PAIR)
        err = cudaOccupancyMaxActiveClusters(&pairs, product<PAIR>, &config);
    if (err)
        return err;
    const unsigned room = PAIR ? 2 * (unsigned)pairs : (unsigned)run->multiprocessors,
                   wanted = PAIR ? 2 * tiles : tiles;
    config.gridDim = room < wanted ? room : wanted;
    return cudaLaunchKernelEx(&config, product<PAIR>, a, b, buffer<float>(run, 2), s, tiles);
}

} // namespace

LAB_LAUNCHER(gck_matmul_wgmma) {
    return launch<false>(run);
}

LAB_LAUNCHER(gck_matmul_wgmma_pair) {
    return launch<true>(run);
}
