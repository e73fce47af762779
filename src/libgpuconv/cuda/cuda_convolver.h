/* The convolution of planar chunks on the device: response, tables and scratch in device memory, and the launches. */
#ifndef GC_CUDA_CUDA_CONVOLVER_H
#define GC_CUDA_CUDA_CONVOLVER_H

#include "cuda_dense.h"
#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/measure_backend.h"

/* Of direct, overlap_save, partitioning, long_partitioning and dense only the one of the schedule is filled. Device
 * memory belongs to the resources given to gc_cuda_convolver_init. */
typedef struct gc_cuda_convolver {
    gc_schedule schedule;
    gck_matrix matrix;      /* in and out are set for each chunk */
    gck_route *host_routes; /* allocated */
    gck_direct_taps direct;
    gck_overlap_save_form form;
    gck_overlap_save_memory overlap_save;
    gck_partitioning partitioning;
    gc_cuda_dense dense;
    gck_long_partitioning long_partitioning; /* transforms beyond GCK_PARTITIONED_POINTS_MAX */
} gc_cuda_convolver;

/* Returns whether the transforms of a partitioned schedule are long ones, in three kernels (partitioned_long.cu). */
bool gc_cuda_long_partitions(const gc_schedule *schedule);

/* Returns the number of partitions that the kernels compute: the schedule's, padded with zeros if they are short. */
int64_t gc_cuda_partitions(const gc_schedule *schedule);

/* Returns what decides the kernels of overlap-save with transforms of `points` real points. */
gck_overlap_save_form gc_cuda_overlap_save_form(const gc_device *device, const gpuconv_ir *ir, int64_t points);

/* Returns the transforms of overlap-save in three kernels for which a convolver has scratch memory. */
int64_t gc_cuda_scratch_transforms(const gpuconv_ir *ir, const gc_schedule *schedule, int64_t chunk);

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
