/* Declarations shared by the direct convolution kernels. */
#ifndef GC_KERNELS_DIRECT_CUH
#define GC_KERNELS_DIRECT_CUH

#include "kernels/engine/launch.cuh"
#include "kernels/engine/matrix.cuh"

/* `count` outputs from `first` on, which share a response. */
struct output_range {
    int first, count;
};

/* Stores whether the code of gck_direct_tensor on the current device contains products on tensor cores: code compiled
 * for an architecture below 8.0 does not, on whatever device it runs. */
cudaError_t gck_direct_tensor_is_compiled(bool *compiled);

/* Convolves on tensor cores with one response of GCK_DIRECT_TENSOR_TAPS_MIN to _MAX taps (direct_tensor.cu). table: of
 * all planes, on the device. */
cudaError_t gck_direct_tensor(const gck_matrix *matrix, output_range outputs, const uint2 *table, int taps_count,
                              int64_t frames, cudaStream_t stream);

#endif
