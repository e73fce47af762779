/* How a job on device memory is computed: the kernels, the size of their transforms, and the workspace. A pure function
 * of the job and the device. Each way to compute rows is an algorithm: rows_chip.c, rows_three_pass.c, rows_direct.c.
 */
#ifndef GC_CUDA_JOB_PLAN_H
#define GC_CUDA_JOB_PLAN_H

#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/algorithm.h"

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

/* Fills the shape and what is given of the responses in *problem: their spectra by `transform` if `kept` (NULL: spectra
 * that will be kept, by any), and their samples if `samples`. Without `kept`, `transform` is the only way to consider.
 */
void gc_job_problem(const gc_job_shape *shape, bool kept, bool samples, const gc_job_transform *transform,
                    gc_problem *problem);

/* Makes the fastest plan by the cost model; *plan is zero if there is none. */
void gc_job_plan_make(const gc_device *device, const gc_costs *costs, const gc_problem *problem, gc_job_plan *plan);

/* Does the same, or returns the plan that this thread has made before for an equal device and problem, among the last
 * few: making a plan takes a microsecond, longer than the other checks of a call. */
void gc_job_plan_recall(const gc_device *device, const gc_costs *costs, const gc_problem *problem, gc_job_plan *plan);

/* Returns the complex points of a transform, 0 for direct sums. */
int64_t gc_job_points(gc_job_transform transform);

/* Returns whether the device has the shared memory for a transform. */
bool gc_job_transform_fits(const gc_device *device, gc_job_transform transform);

/* Returns the parts of a response of `taps` taps with a transform of `points` complex points. */
int64_t gc_job_parts(int64_t points, int64_t taps);

/* ---- Algorithms -------------------------------------------------------------------------------------------------- */

typedef struct gc_cuda_rows {
    gc_algorithm row;       /* the first member: gc_choice.algorithm points to it */
    signed char number[25]; /* 1 + index of the kernels with transforms of 2^i real points; 0: there are none */

    /* Returns the bytes of shared memory of a block. NULL: any device has them. */
    int (*shared_bytes)(int size);

    /* Completes a plan whose transform and points are set. Returns false if the transform does not serve the problem.
     */
    bool (*plan)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_job_plan *plan);
} gc_cuda_rows;

extern const gc_cuda_rows gc_rows_three_pass, gc_rows_chip, gc_rows_direct;

/* The entries of a row. */
bool gc_rows_fits(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice);
void gc_rows_cost(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);
/* The time of a launch among others of the same call, in that of one alone. */
#define GC_ROWS_LAUNCH 0.857

#define GC_ROWS_ENTRY(id, name, least, most)                                                                           \
    { id, name, GC_ROWS, least, most, 0, 0, gc_rows_fits, gc_rows_cost, NULL, NULL }

/* Fills the cut of the rows into segments. Returns the parts of a response. */
int64_t gc_rows_cut(const gc_job_shape *shape, gc_job_plan *plan);

#endif
