/* The convolution of planar chunks on the device: response, tables and scratch in device memory, and the launches. */
#ifndef GC_CUDA_CUDA_CONVOLVER_H
#define GC_CUDA_CUDA_CONVOLVER_H

#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/conv/plan.h"

/* Of the members behind host_routes, an algorithm fills its own. Device memory belongs to the resources given to
 * gc_cuda_convolver_init. */
typedef struct gc_cuda_convolver {
    const struct gc_cuda_algorithm *algorithm;
    gc_schedule schedule;
    gck_matrix matrix;      /* in and out are set for each chunk */
    gck_route *host_routes; /* allocated */
    gck_direct_taps direct;
    gck_overlap_save_form form;
    gck_overlap_save_memory overlap_save;
    gck_partitioning partitioning;
    gck_dense dense;
    gck_dense_part *parts; /* allocated: the components of the response, and one without inputs for outputs that have no
                              route */
    int parts_count;
} gc_cuda_convolver;

/* Allocates memory, copies the response to the device and queues the computation of its spectra. Strides in floats.
 * Returns the first error of `resources`, now or before; call gc_cuda_convolver_free in any case. The plan's response
 * must outlive the convolver. */
cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *convolver, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, gc_cuda_resources *resources, cudaStream_t stream);

/* Queues the convolution of one chunk; `frames` outputs are needed, more may be written. */
cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *convolver, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream);

/* Frees host memory. */
void gc_cuda_convolver_free(gc_cuda_convolver *convolver);

#endif
