/* The device's share of a convolution: response, tables and scratch in its memory, and the launches of one chunk. */
#ifndef GC_CUDA_CUDA_CONVOLVER_H
#define GC_CUDA_CUDA_CONVOLVER_H

#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/backend.h"

typedef struct gc_cuda_convolver {
    gc_schedule schedule;
    gck_matrix matrix;  /* in and out are set for each chunk */
    int64_t pairs;      /* of the partitions' blocks in a whole chunk */
    int64_t partitions; /* padded to the kernels' step */
    gck_route *host_route;
    const float *host_taps; /* the plan's response */
    gck_route *route;
    int *row;
    float *taps;
    uint2 *tensor_table; /* or NULL */
    float2 *table, *spectra, *delay;
    float2 *sums; /* the partitions', or what a long transform keeps between its kernels */
    int64_t delay_bytes;
} gc_cuda_convolver;

/* How many partitions the kernels see: the schedule's, padded with zeros. */
int64_t gc_cuda_partitions(const gc_schedule *schedule);

/* Takes the memory and queues the response's way to the device; strides in floats. On failure free it all the same. */
cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *convolver, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, cudaStream_t stream);

/* Queues the convolution of one chunk, of which `frames` outputs are wanted. */
cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *convolver, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream);

void gc_cuda_convolver_free(gc_cuda_convolver *convolver);

#endif
