/* Copies of large blocks of ordinary host memory to a device. */
#ifndef GC_CUDA_CUDA_UPLOAD_H
#define GC_CUDA_CUDA_UPLOAD_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Copies `bytes` bytes to the current device, in the order of `stream`, and waits for the copy; `from` may be freed
 * afterwards. From 32 MB on all cores take part. */
cudaError_t gc_cuda_copy_to_device(void *to, const void *from, int64_t bytes, cudaStream_t stream);

#endif
