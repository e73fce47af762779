/* Declarations shared by the direct convolution kernels. */
#ifndef GC_KERNELS_DIRECT_CUH
#define GC_KERNELS_DIRECT_CUH

#include "launch.cuh"
#include "matrix.cuh"

/* `count` outputs from `first` on, which share a response. */
struct output_range {
    int first, count;
};

/* Convolves with one response of at most GCK_DIRECT_SHORT_TAPS_MAX taps (direct_short.cu). */
cudaError_t gck_direct_short(const gck_matrix *matrix, output_range outputs, const float *host_taps, int taps_count,
                             int64_t frames, cudaStream_t stream);

/* Stores whether the code of gck_direct_tensor on the current device contains products on tensor cores: code compiled
 * for an architecture below 8.0 does not, on whatever device it runs. */
cudaError_t gck_direct_tensor_is_compiled(bool *compiled);

/* Convolves on tensor cores with one response of GCK_DIRECT_TENSOR_TAPS_MIN to _MAX taps (direct_tensor.cu). table: of
 * all planes, on the device. */
cudaError_t gck_direct_tensor(const gck_matrix *matrix, output_range outputs, const uint2 *table, int taps_count,
                              int64_t frames, cudaStream_t stream);

/* Stores the outputs of a warp, OUTPUTS per lane, through its part of the tile in shared memory, so that it writes
 * whole lines; `count` of them exist. No other warp may still read that part. */
template <int OUTPUTS>
__device__ __forceinline__ void store_warp(float *tile, const float *acc, float *out, int64_t count) {
    const int UNIT = 32 * OUTPUTS, LINE = 4 * 32;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < OUTPUTS; r += 4)
        *(float4 *)(tile + OUTPUTS * lane + r) = make_float4(acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
    __syncwarp();
    if (count >= UNIT) {
#pragma unroll
        for (int i = 0; i < UNIT; i += LINE)
            *(float4 *)(out + i + 4 * lane) = *(const float4 *)(tile + i + 4 * lane);
    } else {
        for (int i = 4 * lane; i < count; i += LINE)
            *(float4 *)(out + i) = *(const float4 *)(tile + i);
    }
}

#endif
