/* The objects of gpuconv_arrays.h on a device, and the work that they share. */
#ifndef GC_CUDA_JOB_H
#define GC_CUDA_JOB_H

#include "cuda_resources.h"
#include "job_plan.h"
#include "libgpuconv/engine/rows_executor.h"

/* A place on a device. */
typedef struct gc_cuda_arrays {
    gpuconv_arrays base;
    gc_device figures;
    gc_costs costs;
    gc_cuda_resources resources;
    const float2 *chip[GCK_CHIP_SIZES]; /* twiddle tables; NULL: the device does not have this size */
    const float2 *three[GCK_3PASS_SIZES];
} gc_cuda_arrays;

typedef struct gc_cuda_responses {
    gpuconv_responses base;
    gc_cuda_resources resources;
    gc_job_transform transform;
    int64_t parts;
    float2 *spectra; /* rows x parts */
    float *samples;  /* rows x taps, of few short responses without routes, for direct sums; or NULL */
    /* With routes, in device memory: those by output, those of the transposed matrix by input, and for gradients the
     * input and the output (in `plane`) of each. */
    const int *row, *transposed_row;
    const gck_route *route, *transposed_route, *ends;
} gc_cuda_responses;

/* Returns the responses that are prepared for a job, or NULL. */
static inline const gc_cuda_responses *gc_job_prepared(const gpuconv_arrays_job *job) {
    return (const gc_cuda_responses *)job->prepared;
}

/* Returns the rows of an array as the kernels take them. */
gck_rows gc_job_rows(const gpuconv_rows *array);

/* Returns the table of a transform. */
const float2 *gc_job_twiddles(const gc_cuda_arrays *cuda, gc_job_transform transform);

/* Checks that the device of an object is current. Returns ARGUMENT if it is not. */
gpuconv_status gc_job_check_device(int device, gpuconv_error *error);

/* Queues a checked job by a plan. Returns the first error of CUDA. */
cudaError_t gc_job_run(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_shape *shape,
                       const gc_job_plan *plan, void *workspace, cudaStream_t stream);

/* The same for a transform in three kernels (job_chunks.c). */
cudaError_t gc_job_run_chunks(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_shape *shape,
                              const gc_job_plan *plan, float2 *workspace, cudaStream_t stream);

/* Checks a job and makes its plan. only: the only transform to consider, for fresh responses; NULL: any. */
gpuconv_status gc_job_prepare(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_transform *only,
                              gc_job_shape *shape, gc_job_plan *plan, gpuconv_error *error);

/* Checks and queues a job with a choice of the transform, for tests and benchmarks. */
gpuconv_status gc_job_run_with(const gc_cuda_arrays *cuda, const gpuconv_arrays_job *job, const gc_job_transform *only,
                               void *workspace, size_t bytes, cudaStream_t stream, gpuconv_error *error);

/* Prepared responses and streamers: entries of gc_rows_cuda (job_responses.c, job_streamer.c). */
gpuconv_status gc_job_new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error);
gpuconv_status gc_job_route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error);
gpuconv_status gc_job_update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error);
int64_t gc_job_responses_bytes(const gpuconv_responses *responses);
void gc_job_free_responses(gpuconv_responses *responses);
gpuconv_status gc_job_new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error);
gpuconv_status gc_job_process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error);
gpuconv_status gc_job_reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error);
void gc_job_free_streamer(gpuconv_streamer *streamer);

/* Returns the sharing of responses of a job without routes. */
gck_sharing gc_job_sharing(const gc_job_shape *shape);

#endif
