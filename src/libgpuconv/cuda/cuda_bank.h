/* What filter banks (cuda_filter_bank.c) and matrix banks (cuda_matrix_bank.c) on a device share. */
#ifndef GC_CUDA_CUDA_BANK_H
#define GC_CUDA_CUDA_BANK_H

#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/filter_bank.h"

/* Returns the table of the transforms of a hop on the device: hop entries exp(-2 pi i m / hop). */
const float2 *gc_cuda_bank_table(gc_cuda_resources *resources, int64_t hop);

/* Allocates device memory and queues clearing it. */
void *gc_cuda_bank_zeroed(gc_cuda_resources *resources, int64_t bytes, cudaStream_t stream);

/* The spectra of a level: partitions x hop taps from `offset` on of every response. */
typedef struct gc_cuda_bank_spectra {
    gck_filter_bank_level level; /* hop, partitions and table */
    int64_t offset;
    float2 *spectra;
} gc_cuda_bank_spectra;

/* Copies the responses to the device, some at a time, and computes the spectra of `count` levels. */
cudaError_t gc_cuda_bank_transform(int device, const gc_filter_bank_config *config, const gc_cuda_bank_spectra *levels,
                                   int count, cudaStream_t stream);

/* Makes a graph of the work that `queue` queues on the stream. Returns NULL after an error. */
cudaGraphExec_t gc_cuda_bank_capture(gc_cuda_resources *resources, cudaStream_t stream,
                                     cudaError_t (*queue)(gc_filter_bank *bank), gc_filter_bank *bank);

/* Waits for an event that takes microseconds. */
cudaError_t gc_cuda_bank_wait(cudaEvent_t event);

/* Allocates page-locked memory; NULL if there is too little. */
float *gc_cuda_bank_pinned(int device, int64_t floats);
void gc_cuda_bank_free_pinned(int device, float *pinned);

#endif
