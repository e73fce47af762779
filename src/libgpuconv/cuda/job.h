/* The objects of gpuconv_cuda.h, and the work that they share. */
#ifndef GC_CUDA_JOB_H
#define GC_CUDA_JOB_H

#include "cuda_resources.h"
#include "job_plan.h"

struct gpuconv_cuda {
    int device;
    gc_device figures;
    gc_costs costs;
    gc_cuda_resources resources;
    const float2 *chip[GCK_CHIP_SIZES]; /* twiddle tables; NULL: the device does not have this size */
    const float2 *three[GCK_3PASS_SIZES];
};

struct gpuconv_cuda_responses {
    int device;
    gc_cuda_resources resources;
    gc_job_transform transform;
    int64_t rows, taps, parts;
    gc_job_routes routes;
    float2 *spectra; /* rows x parts */
    float *samples;  /* rows x taps, of few short responses without routes, for direct sums; or NULL */
    /* With routes, in device memory: those by output, those of the transposed matrix by input, and for gradients the
     * input and the output (in `plane`) of each. */
    const int *row, *transposed_row;
    const gck_route *route, *transposed_route, *ends;
};

/* Returns the rows of an array as the kernels take them. */
gck_rows gc_job_rows(const gpuconv_cuda_array *array);

/* Returns the table of a transform. */
const float2 *gc_job_twiddles(const gpuconv_cuda *cuda, gc_job_transform transform);

/* Checks that the device of an object is current. Returns ARGUMENT if it is not. */
gpuconv_status gc_job_check_device(int device, gpuconv_error *error);

/* Queues a checked job by a plan. Returns the first error of CUDA. */
cudaError_t gc_job_run(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_shape *shape,
                       const gc_job_plan *plan, void *workspace, cudaStream_t stream);

/* The same for a transform in three kernels (job_chunks.c). */
cudaError_t gc_job_run_chunks(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_shape *shape,
                              const gc_job_plan *plan, float2 *workspace, cudaStream_t stream);

/* Checks a job and makes its plan. only: the only transform to consider, for fresh responses; NULL: any. */
gpuconv_status gc_job_prepare(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_transform *only,
                              gc_job_shape *shape, gc_job_plan *plan, gpuconv_error *error);

/* gpuconv_cuda_run with a choice of the transform, for tests and benchmarks. */
gpuconv_status gc_job_run_with(const gpuconv_cuda *cuda, const gpuconv_cuda_job *job, const gc_job_transform *only,
                               void *workspace, size_t bytes, cudaStream_t stream, gpuconv_error *error);

/* Returns the sharing of responses of a job without routes. */
gck_sharing gc_job_sharing(const gc_job_shape *shape);

#endif
