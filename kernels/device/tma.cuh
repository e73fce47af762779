/*
 * Shared-memory barriers that count bytes (mbarrier) and Hopper's tensor memory accelerator (TMA). One thread requests
 * a tile of a tensor; the hardware writes it to shared memory with the 128-byte swizzle, fills elements beyond the edge
 * with zeros, and reports the bytes to the barrier. For sm_90 and later.
 */
#ifndef GC_KERNELS_DEVICE_TMA_CUH
#define GC_KERNELS_DEVICE_TMA_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

namespace tma {

/* ---- On the host ------------------------------------------------------------------------------------------------- */

/* Fills *map with the descriptor of a tensor of two-byte floats with `rank` dimensions (at most 5), the first one
 * contiguous; `strides` of the others in bytes, multiples of 16; `box`: the tile's size, 64 in the first dimension.
 * Returns a cudaError_t as int. */
static inline int describe(CUtensorMap *map, const void *base, unsigned rank, const cuuint64_t *size,
                           const cuuint64_t *strides, const cuuint32_t *box) {
    typedef CUresult encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    void *entry = NULL;
    cudaDriverEntryPointQueryResult query;
    cudaError_t err =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &query);
    if (err || query != cudaDriverEntryPointSuccess)
        return err ? err : cudaErrorNotSupported;
    const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    CUresult result = ((encode *)entry)(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, const_cast<void *>(base), size,
                                        strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

/* ---- Barriers in shared memory, by their 32-bit address ---------------------------------------------------------- */

static __device__ __forceinline__ unsigned address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void barrier_new(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialised barriers visible. Call it after barrier_new and before __syncthreads or a cluster barrier. */
static __device__ __forceinline__ void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives at the barrier and adds `bytes` to the bytes that its current phase waits for. */
static __device__ __forceinline__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the barrier at the same shared-memory address in block `block` of the cluster. */
static __device__ __forceinline__ void arrive_at(unsigned barrier, unsigned block) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
                 "r"(block)
                 : "memory");
}

/* Blocks until the phase with this parity has ended. */
static __device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    while (!done);
}

/* Blocks until all threads of all blocks of the cluster have arrived. */
static __device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* ---- Asynchronous copies of a tile to shared memory ---------------------------------------------------------------
 */

/* Starts the copy of the tile at (x, y) to address `to`; its bytes are reported to `barrier`. */
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap *map, int x, int y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}

static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap *map, int x, int y, int z,
                                             unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(to),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
        : "memory");
}

/* Starts the copy to the same address in every block whose bit is set in `blocks`; each block's own barrier counts the
 * bytes. */
static __device__ __forceinline__ void fetch_to_all(unsigned to, const CUtensorMap *map, int x, int y, unsigned barrier,
                                                    unsigned short blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
                 : "memory");
}

} // namespace tma

#endif
