/* How a job on device memory is computed: the kernels, the size of their transforms, and the workspace. A pure function
 * of the job's shape and the device's figures; no plan is kept, because making one takes a microsecond. */
#ifndef GC_CUDA_JOB_PLAN_H
#define GC_CUDA_JOB_PLAN_H

#include "job_shape.h"
#include "kernels/engine/kernels.h"

/* The figures of a device that plans depend on. */
typedef struct gc_job_device {
    int multiprocessors, threads; /* threads of a multiprocessor */
    int shared_block, shared;     /* bytes of shared memory of a block, and of a multiprocessor */
    double bandwidth;             /* bytes per second of the device memory */
    int64_t chunk_bytes;          /* transforms of a chunk in the workspace, about */
} gc_job_device;

/* A kind of transform: a whole one on the chip (job_chip.cu), or in three kernels (job_3pass.cu). */
typedef struct gc_job_transform {
    bool chip;
    int size; /* index of the kernels' sizes */
} gc_job_transform;

typedef struct gc_job_plan {
    gc_job_transform transform;
    int64_t points;    /* N */
    int64_t hop;       /* frames of a segment */
    int64_t part_taps; /* taps of a part of the response */
    int64_t parts;
    int64_t segments;  /* of a row of the target; of the signal for a gradient by the response */
    int64_t lo, shift; /* as in job.h */
    int64_t splits, blocks;
    /* Three kernels: the job is cut into chunks of `rows` rows (batches if there are routes) and of `chunk_segments`
     * segments. Transforms in the workspace: */
    int64_t rows, chunk_segments;
    bool rolling; /* responses belong to their chunk; else they are kept for all chunks */
    bool sums;    /* products are summed (gck_3pass_sum), else multiplied in place */
    int64_t response_transforms, source_transforms, result_transforms;
    int64_t bytes;  /* of the workspace */
    double seconds; /* predicted */
} gc_job_plan;

/* Makes the fastest plan by the cost model.
 * @param kept  whether the responses are prepared, not fresh
 * @param only  the only transform to consider, NULL: any */
void gc_job_plan_make(const gc_job_device *device, const gc_job_shape *shape, bool kept, const gc_job_transform *only,
                      gc_job_plan *plan);

/* Returns whether the device has the shared memory for a transform. */
bool gc_job_transform_fits(const gc_job_device *device, gc_job_transform transform);

/* Returns the parts of a response of `taps` taps with this transform. */
int64_t gc_job_parts(gc_job_transform transform, int64_t taps);

#endif
