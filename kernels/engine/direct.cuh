/* The direct kernels of their own files, and what those of short and of few taps share: how outputs leave, and how many
 * blocks stay. */
#ifndef GC_KERNELS_DIRECT_CUH
#define GC_KERNELS_DIRECT_CUH

#include "matrix.cuh"

/* Few taps (few_taps.cu): one response of at most GCK_FEW_TAPS for `together` outputs from `output` on. */
cudaError_t gck_few_taps(const gck_matrix *matrix, int output, int together, const float *host_taps, int count,
                         int64_t frames, cudaStream_t stream);

/* On tensor cores (tensor_direct.cu): up to GCK_TENSOR_TAPS taps for `together` outputs from `output` on, which share a
 * response; table: of all planes, on the device. */
cudaError_t gck_tensor_direct(const gck_matrix *matrix, int output, int together, const uint2 *table, int count,
                              int64_t frames, cudaStream_t stream);

/* A warp's outputs, OUTPUTS a lane, through its share of the tile, so that it writes whole lines; `most` of them are
 * wanted. Nobody else may read that share any more. */
template <int OUTPUTS>
__device__ __forceinline__ void store_warp(float *tile, const float *acc, float *out, int64_t most) {
    const int UNIT = 32 * OUTPUTS, LINE = 4 * 32;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < OUTPUTS; r += 4)
        *(float4 *)(tile + OUTPUTS * lane + r) = make_float4(acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
    __syncwarp();
    if (most >= UNIT) {
#pragma unroll
        for (int i = 0; i < UNIT; i += LINE)
            *(float4 *)(out + i + 4 * lane) = *(const float4 *)(tile + i + 4 * lane);
    } else {
        for (int i = 4 * lane; i < most; i += LINE)
            *(float4 *)(out + i) = *(const float4 *)(tile + i);
    }
}

/* Blocks that keep every multiprocessor of this device as full as `resident` of them can. */
inline cudaError_t persistent_blocks(int resident, int64_t tiles, unsigned *blocks) {
    int device, multiprocessors;
    cudaError_t failed = cudaGetDevice(&device);
    if (!failed)
        failed = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (!failed)
        *blocks = (unsigned)min(tiles, (int64_t)resident * multiprocessors);
    return failed;
}

#endif
