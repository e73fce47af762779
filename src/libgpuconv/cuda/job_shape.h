/* Checks of jobs on device memory, and their shape (gpuconv_cuda.h). Compiled in every build: needs nothing of CUDA. */
#ifndef GC_CUDA_JOB_SHAPE_H
#define GC_CUDA_JOB_SHAPE_H

#include "libgpuconv/engine/problem.h"

/* Limits of the public header. */
#define GC_JOB_FRAMES_MAX (INT64_C(1) << 40)
#define GC_JOB_ROWS_MAX (INT64_C(1) << 30)

/* Reads a caller's job, of this version or an older one. Returns ARGUMENT if its size is impossible. */
gpuconv_status gc_job_read(const gpuconv_cuda_job *from, gpuconv_cuda_job *job, gpuconv_error *error);

/* Checks an array. name: "job.signal", for messages. written: whether it is the array that the job writes. */
gpuconv_status gc_job_check_array(const gpuconv_cuda_array *array, const char *name, bool written,
                                  gpuconv_error *error);

/* Checks that the pointers of an array are there and aligned to a sample. */
gpuconv_status gc_job_check_data(const gpuconv_cuda_array *array, const char *name, gpuconv_error *error);

/* Checks a job but for its pointers, and fills *shape. taps, routes: those of job->prepared, if it is given; `taps` is
 * 0 and `routes` empty if not. prepared_rows: its number of responses. */
gpuconv_status gc_job_check(const gpuconv_cuda_job *job, int64_t taps, int64_t prepared_rows, gc_job_routes routes,
                            gc_job_shape *shape, gpuconv_error *error);

/* Checks the pointers of a job that gc_job_check has accepted. */
gpuconv_status gc_job_check_pointers(const gpuconv_cuda_job *job, gpuconv_error *error);

/* Returns the array that the job writes. */
const gpuconv_cuda_array *gc_job_written(const gpuconv_cuda_job *job);

/* Returns the bytes of a sample. */
int gc_job_sample_bytes(gpuconv_cuda_type type);

#endif
