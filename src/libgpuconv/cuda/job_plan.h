/* How a job on device memory is computed: the kernels, the size of their transforms, and the workspace. A pure function
 * of the job's shape and the device's figures. */
#ifndef GC_CUDA_JOB_PLAN_H
#define GC_CUDA_JOB_PLAN_H

#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/rows_executor.h"

/* The figures of a device that plans depend on. */
typedef struct gc_job_device {
    int multiprocessors, threads; /* threads of a multiprocessor */
    int shared_block, shared;     /* bytes of shared memory of a block, and of a multiprocessor */
    double bandwidth;             /* bytes per second of the device memory */
    double lanes;                 /* multiply-adds of a multiprocessor per cycle */
    double clock;                 /* cycles per second */
    int64_t chunk_bytes;          /* transforms of a chunk in the workspace, about */
} gc_job_device;

typedef enum gc_job_kind {
    GC_JOB_3PASS, /* transforms in three kernels (three_pass_rows.cu) */
    GC_JOB_CHIP,  /* a whole transform on the chip (job_chip.cu) */
    GC_JOB_DIRECT /* direct sums (job_direct.cu) */
} gc_job_kind;

/* A kind of transform; direct sums have none. */
typedef struct gc_job_transform {
    gc_job_kind kind;
    int size; /* index of the kernels' sizes; 0 for direct sums */
} gc_job_transform;

/* Ways to compute a job, and the transform of number 0 .. GC_JOB_TRANSFORMS - 1. */
enum { GC_JOB_TRANSFORMS = GCK_CHIP_SIZES + GCK_3PASS_SIZES + 1 };
gc_job_transform gc_job_transform_number(int number);

typedef struct gc_job_plan {
    gc_job_transform transform;
    int64_t points;    /* N */
    int64_t hop;       /* frames of a segment */
    int64_t part_taps; /* taps of a part of the response */
    int64_t parts;
    int64_t segments;  /* of a row of the target; of the signal for a gradient by the response */
    int64_t lo, shift; /* as in job.h */
    int64_t splits, blocks;
    /* Direct sums: as in gck_job_direct. */
    int groups, term_parts, chunk, each;
    int64_t tiles;
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

/* Does the same, or returns the plan that this thread has made before for equal arguments, among the last few: making a
 * plan takes a microsecond, longer than the other checks of a call.
 * @param direct  whether direct sums serve too, beside the transform of the responses that are kept */
void gc_job_plan_recall(const gc_job_device *device, const gc_job_shape *shape, const gc_job_transform *only, bool kept,
                        bool direct, gc_job_plan *plan);

/* Makes the plan of direct sums. Returns false if they do not serve the job. */
bool gc_job_plan_direct(const gc_job_device *device, const gc_job_shape *shape, gc_job_plan *plan);

/* Returns whether the device has the shared memory for a transform. */
bool gc_job_transform_fits(const gc_job_device *device, gc_job_transform transform);

/* Returns the parts of a response of `taps` taps with this transform. */
int64_t gc_job_parts(gc_job_transform transform, int64_t taps);

#endif
