/* The algorithms of streams on CUDA devices: what planning needs of each, and its part of a convolver, which convolves
 * planar chunks on the device. */
#ifndef GC_CUDA_CUDA_ALGORITHM_H
#define GC_CUDA_CUDA_ALGORITHM_H

#include "cuda_device.h"
#include "kernels/engine/kernels.h"

/* ---- Convolvers -------------------------------------------------------------------------------------------------- */

/* Of the members behind host_routes, an algorithm fills its own. Device memory belongs to the resources given to
 * gc_cuda_convolver_init. */
typedef struct gc_cuda_convolver {
    const struct gc_cuda_algorithm *algorithm;
    gc_schedule schedule;
    gck_routes routes;      /* in and out are set for each chunk */
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

/* ---- Algorithms -------------------------------------------------------------------------------------------------- */

/* Chunks in flight, at most: one being read, three in the streams, one being written, one in reserve. */
enum { GC_CUDA_SLOTS = 6 };

typedef struct gc_cuda_algorithm {
    gc_algorithm row; /* the first member: gc_choice.algorithm points to it */

    bool (*schedule)(int64_t taps, int64_t points, gc_schedule *schedule);

    /* Returns the frames of which a chunk is a multiple. NULL: the hop. */
    int64_t (*step)(const gc_schedule *schedule);
    int64_t rounding; /* frames to which chunks are rounded where the latency is not bounded; 0: to a step */

    /* Returns the frames that a chunk should have at least. NULL: one step. */
    int64_t (*chunk)(const gc_schedule *schedule);

    /* Returns the seconds in which the device computes `total` output frames. */
    double (*seconds)(const gc_problem *problem, const gc_device *device, const gc_costs *costs,
                      const gc_choice *choice, double total);

    /* Returns the approximate bytes of tables, spectra and scratch memory. NULL: none. */
    double (*bytes)(const gc_problem *problem, const gc_device *device, const gc_choice *choice);

    /* Allocates the tables and the memory of a convolver and queues the computation of its spectra. Errors:
     * resources->err. */
    void (*init)(gc_cuda_convolver *convolver, const gpuconv_plan *plan, const gck_responses *responses,
                 gc_cuda_resources *resources, cudaStream_t stream);

    /* Queues the convolution of one chunk, of which `frames` outputs are needed. */
    cudaError_t (*run)(const gc_cuda_convolver *convolver, const gck_routes *matrix, int64_t frames,
                       cudaStream_t stream);
} gc_cuda_algorithm;

extern const gc_cuda_algorithm gc_cuda_direct, gc_cuda_overlap_save, gc_cuda_partitioned, gc_cuda_dense;

/* The algorithms of streams, rows (cuda_arrays.h) and banks; NULL ends the array. */
extern const gc_algorithm *const gc_cuda_algorithms[];

/* Returns the algorithm of a choice for a CUDA device. */
static inline const gc_cuda_algorithm *gc_cuda_algorithm_of(const gc_choice *choice) {
    return (const gc_cuda_algorithm *)choice->algorithm;
}

/* ---- What the rows share (cuda_convolver.c) -----------------------------------------------------------------------
 */

/* The entries of a row. */
void gc_cuda_cost(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);
void gc_cuda_settle(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

#define GC_CUDA_ROW(id, name, least, most, refuse)                                                                     \
    { id, name, GC_STREAM, least, most, 0, 0, fits, gc_cuda_cost, gc_cuda_settle, refuse }

/* Returns the frames of which a chunk is a multiple. */
int64_t gc_cuda_step(const gc_cuda_algorithm *algorithm, const gc_schedule *schedule);

/* Returns the frames of a chunk. */
int64_t gc_cuda_chunk(const gc_cuda_algorithm *algorithm, const gc_problem *problem, const gc_schedule *schedule);

/* Returns the approximate bytes of device memory that a stream of this choice allocates. */
double gc_cuda_bytes(const gc_problem *problem, const gc_device *device, const gc_choice *choice);

/* Returns the cost of a point in overlap-save of this size, in one kernel or three, relative to the cheapest size of
 * the same kernels, measured on an H200. Larger sizes have larger tables, fewer resident blocks and more cache misses.
 */
double gc_cuda_slowdown(int64_t points, bool three_kernels);

#endif
