/*
 * Page-locked host memory, kept for reuse.
 *
 * The driver waits for all work on the device when page-locked memory is freed or unlocked. Freed blocks are therefore
 * kept, up to 256 MB in all, and given to the next caller whom they fit, which also saves the time that locking takes.
 */
#ifndef GC_CUDA_CUDA_PINNED_H
#define GC_CUDA_CUDA_PINNED_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Stores at least `bytes` bytes in *memory, not initialised, page-locked for all devices. Any thread may call it. */
cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory);

/* Keeps the memory for reuse; no work may use it any more. Past the limit the memory that has been kept longest is
 * freed, which waits for the devices. */
void gc_cuda_pinned_free(void *memory);

#endif
