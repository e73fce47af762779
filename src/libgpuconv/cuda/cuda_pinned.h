/*
 * Page-locked host memory, kept for reuse.
 *
 * The driver waits for all work on all devices when page-locked memory is freed. Freed blocks are therefore kept, up to
 * 256 MB in all, and given to the next caller whom they fit, which also saves the milliseconds that locking takes.
 */
#ifndef GC_CUDA_CUDA_PINNED_H
#define GC_CUDA_CUDA_PINNED_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Stores at least `bytes` bytes in *memory, not initialised, page-locked for all devices. Any thread may call it. */
cudaError_t gc_cuda_pinned_new(int64_t bytes, void **memory);

/* Keeps the memory for reuse. Past the limit it is freed, which waits for the devices. No work may use it any more. */
void gc_cuda_pinned_free(void *memory);

#endif
