/*
 * Convolutions of the caller's arrays (gpuconv_arrays.h) on a device. A call is planned by a pure function of its
 * problem and of the device: the algorithm, the size of its transforms and the workspace (cuda_arrays.c). Each
 * algorithm is a file with one row: rows_chip.c, rows_three_pass.c, rows_direct.c, rows_short.c, rows_tensor.c,
 * rows_toeplitz.c, rows_varying.c.
 */
#ifndef GC_CUDA_CUDA_ARRAYS_H
#define GC_CUDA_CUDA_ARRAYS_H

#include "cuda_device.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/memory.h"

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

typedef struct gc_cuda_rows gc_cuda_rows;

/* Makes the fastest plan by the cost model; *plan is zero if there is none. */
void gc_rows_plan_make(const gc_device *device, const gc_costs *costs, const gc_problem *problem, gc_rows_plan *plan);

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

/* A place on a device. */
typedef struct gc_cuda_arrays {
    gpuconv_arrays base;
    gc_device figures;
    gc_costs costs;
    gc_cuda_resources resources;
    const float2 *twiddles[GCK_CHIP_SIZES + GCK_3PASS_SIZES + GCK_TENSOR_SIZES]; /* NULL: not on this device */
    /* For tests and calibration: the only algorithm to consider without prepared responses (NULL: any), and the real
     * points of its transforms. */
    const gc_algorithm *required_algorithm;
    int64_t required_points;
} gc_cuda_arrays;

typedef struct gc_cuda_responses {
    gpuconv_responses base;
    gc_cuda_resources resources;
    gc_rows_plan plan; /* whose algorithm and transforms the spectra serve */
    float2 *spectra;   /* rows x parts */
    float *samples;    /* rows x taps, of few short responses without routes, for direct sums; or NULL */
    /* With routes, in device memory: those by output, those of the transposed matrix by input, and for gradients the
     * input and the output (in `plane`) of each. */
    const int *row, *transposed_row;
    const gck_route *route, *transposed_route, *ends;
} gc_cuda_responses;

/* A checked job with its plan. */
typedef struct gc_cuda_call {
    const gc_cuda_arrays *cuda;
    const gpuconv_arrays_job *job;
    const gc_cuda_responses *prepared; /* or NULL */
    gc_job_shape shape;
    gc_rows_plan plan;
    void *workspace; /* of plan.bytes bytes, aligned to 256; set by the caller of plan.algorithm->run */
} gc_cuda_call;

/* Plans a job of shape call->shape, and sets the rest of *call but its workspace. @return UNSUPPORTED */
gpuconv_status gc_cuda_plan(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                            gpuconv_error *error);

/* Checks a job but for its pointers, and plans it. */
gpuconv_status gc_cuda_prepare(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, gc_cuda_call *call,
                               gpuconv_error *error);

/* Returns the rows of an array as the kernels take them. */
gck_rows gc_cuda_kernel_rows(const gpuconv_rows *array);

/* Fills the gates of a job whose operation is not GRADIENT_RESPONSE. */
gck_gates gc_cuda_gates(const gpuconv_arrays_job *job);

/* Returns the rows of an array that may be NULL; without data then. */
static inline gck_rows gc_cuda_kernel_rows_if(const gpuconv_rows *a) {
    return a ? gc_cuda_kernel_rows(a) : (gck_rows){.data = NULL};
}

/* Returns the sharing of responses of a job without routes, and the most rows that share a response. */
gck_sharing gc_cuda_sharing(const gc_job_shape *shape);
static inline int64_t gc_rows_of_response(const gc_job_shape *s) {
    return gc_divide_up(s->rows, s->group * s->responses) * s->group;
}

/* Returns the blocks of a filter that changes with time. */
static inline gck_blocks gc_cuda_blocks(const gc_job_shape *s, gck_ramp ramp) {
    return (gck_blocks){.hop = (int)s->hop, .count = (int)s->blocks, .ramp = ramp};
}

/* ---- Rooms (cuda_rooms.c): the entries of gc_rows_cuda ------------------------------------------------------------
 */

gpuconv_status gc_cuda_plan_rooms(gpuconv_rooms_plan *plan, gpuconv_error *error);
gpuconv_status gc_cuda_simulate(const gpuconv_rooms_plan *plan, const struct gc_rooms *rooms, float *output,
                                void *workspace, cudaStream_t stream, gpuconv_error *error);
void gc_cuda_free_rooms(gpuconv_rooms_plan *plan);

/* ---- Algorithms -------------------------------------------------------------------------------------------------- */

/* What the kernels of a size need. */
typedef struct gc_rows_kernels {
    int64_t twiddles; /* float2 of the table */
    int shared_bytes; /* of a block */
} gc_rows_kernels;

struct gc_cuda_rows {
    gc_algorithm row;       /* the first member: gc_choice.algorithm points to it */
    signed char number[25]; /* 1 + index of the kernels with transforms of 2^i real points; 0: there are none */
    int table;              /* of size 0 in gc_cuda_arrays.twiddles; algorithms with the same transforms share it */
    bool varying;           /* serves filters that change with time */
    bool both;              /* serves GRADIENT_BOTH of plain samples without routes */
    bool gated;             /* serves gates of the type of the samples; elsewhere they take passes of their own */
    bool stepped;           /* serves steps other than 1; elsewhere such rows are copied */

    /* Loads the kernels on the current device, so that no launch has to. */
    cudaError_t (*load)(int shared_bytes_max);

    /* Of algorithms with transforms; else NULL. `twiddles` writes the table of a size in host memory, `spectra` queues
     * the transforms of the rows of `from` into responses->spectra. */
    gc_rows_kernels (*query)(int size);
    void (*twiddles)(int64_t size, float2 *table);
    cudaError_t (*spectra)(const gc_cuda_responses *responses, const gpuconv_rows *from, const float2 *twiddles,
                           cudaStream_t stream);

    /* Completes a plan whose algorithm, size and points are set. Returns false if these do not serve the problem. */
    bool (*plan)(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *plan);

    /* Queues a call. Returns the first error of CUDA. */
    cudaError_t (*run)(const gc_cuda_call *call, cudaStream_t stream);
};

extern const gc_cuda_rows gc_rows_three_pass, gc_rows_chip, gc_rows_direct, gc_rows_short, gc_rows_tensor,
    gc_rows_toeplitz, gc_rows_varying;

/* Returns the index of the kernels with transforms of `points` real points (0: none is needed); -1 if the algorithm has
 * none or the device does not have their shared memory. */
int gc_rows_size(const gc_cuda_rows *algorithm, const gc_device *device, int64_t points);

/* Returns the table of the transforms of a plan. */
static inline const float2 *gc_rows_twiddles(const gc_cuda_arrays *cuda, const gc_rows_plan *plan) {
    return cuda->twiddles[plan->algorithm->table + plan->size];
}

/* The entries of a row. */
bool gc_rows_fits(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice);
void gc_rows_cost(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

#define GC_ROWS_ENTRY(id, name, least, most)                                                                           \
    { id, name, GC_ROWS, least, most, 0, 0, gc_rows_fits, gc_rows_cost, NULL, NULL }

/* The time of a launch among others of the same call, in that of one alone. */
#define GC_ROWS_LAUNCH 0.857

/* Transforms on the chip: the figures of a size; the time of a transform on a busy device, in that of a point of the
 * largest size; the seconds of `items` items of `transforms` transforms each, which
 * also stores the blocks of the launch. */
gc_rows_kernels gc_chip_query(int size);
double gc_chip_work(int size);
double gc_chip_seconds(const gc_job_shape *shape, const gc_device *device, const gc_costs *costs, int size,
                       int64_t items, double transforms, int64_t *blocks);

/* Fills the cut of the rows into segments. Returns the parts of a response. */
int64_t gc_rows_cut(const gc_job_shape *shape, gc_rows_plan *plan);

#endif
