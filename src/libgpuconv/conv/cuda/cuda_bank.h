/* A bank of the CUDA backend with its samples on the device, for the streamer of gpuconv_arrays.h. */
#ifndef GC_CUDA_CUDA_BANK_H
#define GC_CUDA_CUDA_BANK_H

#include "libgpuconv/conv/backend.h"

#include <cuda_runtime_api.h>

/* Queues one period on a stream: inputs x block floats in, outputs x block floats out, device memory. In a diagonal
 * bank they may be the same. */
cudaError_t gc_cuda_bank_queue(gc_bank *bank, const float *in, float *out, cudaStream_t stream);

/* Queues the return to the state after creation. */
cudaError_t gc_cuda_bank_reset(gc_bank *bank, cudaStream_t stream);

#endif
