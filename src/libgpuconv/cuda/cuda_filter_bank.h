/* A filter bank of the CUDA backend with its samples on the device, for the streamer of gpuconv_cuda.h. */
#ifndef GC_CUDA_CUDA_FILTER_BANK_H
#define GC_CUDA_CUDA_FILTER_BANK_H

#include "libgpuconv/engine/filter_bank.h"

#include <cuda_runtime_api.h>

/* Queues one period on a stream: channels x block floats in, as many out, device memory, which may be the same. */
cudaError_t gc_cuda_filter_bank_queue(gc_filter_bank *bank, const float *in, float *out, cudaStream_t stream);

/* Queues the return to the state after creation. */
cudaError_t gc_cuda_filter_bank_reset(gc_filter_bank *bank, cudaStream_t stream);

#endif
