/* Dense matrices of responses on the device (kernels/engine/dense.h): sizes, cost, set-up. */
#ifndef GC_CUDA_CUDA_DENSE_H
#define GC_CUDA_CUDA_DENSE_H

#include "cuda_resources.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/engine/components.h"
#include "libgpuconv/engine/measure_backend.h"

/* More components than this take a launch too many. */
enum { GC_CUDA_DENSE_PARTS_MAX = 64 };

/* A convolver of dense matrices. The parts are the components of the response, and one without inputs for outputs that
 * have no route. */
typedef struct gc_cuda_dense {
    gck_dense dense;
    gck_dense_part *parts; /* allocated */
    int parts_count;
} gc_cuda_dense;

/* Makes the schedule for transforms of `points` points: the whole response in one partition (overlap-save), or
 * partitions of half a transform. Returns false if the sizes do not fit. */
bool gc_cuda_dense_schedule(int64_t taps, int64_t points, bool whole, gc_schedule *schedule);

/* Returns the bytes of device memory of gc_cuda_dense_init, without the taps. */
double gc_cuda_dense_bytes(const gc_components *components, const gc_schedule *schedule, int64_t blocks);

/* Returns the seconds of one chunk of `blocks` blocks. */
double gc_cuda_dense_seconds(const gc_costs *costs, const gc_device *device, const gc_components *components,
                             const gc_schedule *schedule, int64_t blocks);

/* Allocates memory and queues the computation of the spectra of the responses. Errors: resources->err. */
void gc_cuda_dense_init(gc_cuda_dense *dense, const gpuconv_plan *plan, const gck_responses *responses,
                        gc_cuda_resources *resources, cudaStream_t stream);

/* Frees host memory. */
void gc_cuda_dense_free(gc_cuda_dense *dense);

#endif
