/* Checks of jobs on device memory: every message names the field, its value, and the values that fit. */
#include "job_shape.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/sized_struct.h"

#include <stddef.h>

void gpuconv_cuda_job_init(gpuconv_cuda_job *job, size_t size) {
    const gpuconv_cuda_job defaults = {.size = sizeof defaults, .group = 1};
    gc_sized_struct_init(job, size, &defaults, sizeof defaults);
}

gpuconv_status gc_job_read(const gpuconv_cuda_job *from, gpuconv_cuda_job *job, gpuconv_error *error) {
    *job = gpuconv_cuda_job_default();
    return gc_sized_struct_read(
        &(gc_sized_struct){job, sizeof *job, GC_SIZE_UP_TO(gpuconv_cuda_job, prepared), "gpuconv_cuda_job"}, from,
        error);
}

int gc_job_sample_bytes(gpuconv_cuda_type type) {
    return type == GPUCONV_CUDA_F32 ? 4 : 2;
}

static gpuconv_status refuse(gpuconv_error *error, const char *name, const char *field, int64_t value,
                             const char *instead) {
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is %lld; use %s", name, field, (long long)value, instead);
}

gpuconv_status gc_job_check_array(const gpuconv_cuda_array *a, const char *name, bool written, gpuconv_error *error) {
    if ((int)a->type < GPUCONV_CUDA_F32 || a->type > GPUCONV_CUDA_BF16)
        return refuse(error, name, "type", (int)a->type, "a gpuconv_cuda_type");
    if (a->rows < 1 || a->rows > GC_JOB_ROWS_MAX)
        return refuse(error, name, "rows", a->rows, "1 to 2^30");
    if (a->frames < 1 || a->frames > GC_JOB_FRAMES_MAX)
        return refuse(error, name, "frames", a->frames, "1 to 2^40");
    if (a->starts)
        return GPUCONV_OK;
    if (a->stride < 0 || a->stride > INT64_MAX / 8 / a->rows)
        return refuse(error, name, "stride", a->stride, "0 or more elements, and an array of less than 2^63 bytes");
    if (written && a->rows > 1 && a->stride < a->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s.stride is %lld, but rows of %lld frames are written; use at least that, or starts", name,
                       (long long)a->stride, (long long)a->frames);
    return GPUCONV_OK;
}

gpuconv_status gc_job_check_data(const gpuconv_cuda_array *a, const char *name, gpuconv_error *error) {
    if (!a->data)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is NULL; use device memory", name);
    if ((uintptr_t)a->data % (uintptr_t)gc_job_sample_bytes(a->type))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is %p; use an address aligned to a sample, %d bytes",
                       name, a->data, gc_job_sample_bytes(a->type));
    if ((uintptr_t)a->starts % 8 || (uintptr_t)a->lengths % 8)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is %p; use an address aligned to 8 bytes", name,
                       (uintptr_t)a->starts % 8 ? "starts" : "lengths",
                       (const void *)((uintptr_t)a->starts % 8 ? a->starts : a->lengths));
    return GPUCONV_OK;
}

const gpuconv_cuda_array *gc_job_written(const gpuconv_cuda_job *job) {
    return job->operation == GPUCONV_CUDA_CONVOLVE          ? &job->output
           : job->operation == GPUCONV_CUDA_GRADIENT_SIGNAL ? &job->signal
                                                            : &job->response;
}

/* Returns whether the job uses its field `response`. */
static bool uses_response(const gpuconv_cuda_job *job) {
    return !job->prepared || job->operation == GPUCONV_CUDA_GRADIENT_RESPONSE;
}

/* Checks the number of rows of signal and output against the routes. */
static gpuconv_status check_routed(const gpuconv_cuda_job *job, gc_job_shape *s, gpuconv_error *error) {
    if (job->signal.rows % s->routes.inputs)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "job.signal.rows is %lld; use a multiple of the %d inputs of the prepared responses",
                       (long long)job->signal.rows, s->routes.inputs);
    s->batch = job->signal.rows / s->routes.inputs;
    if (job->output.rows != s->batch * s->routes.outputs)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.output.rows is %lld; use %lld, %lld times %d outputs",
                       (long long)job->output.rows, (long long)(s->batch * s->routes.outputs), (long long)s->batch,
                       s->routes.outputs);
    if (job->group != 1)
        return refuse(error, "job", "group", job->group, "1 with prepared responses that have routes");
    s->responses = s->routes.routes;
    return GPUCONV_OK;
}

static gpuconv_status check_arrays(const gpuconv_cuda_job *job, gpuconv_error *error) {
    const gpuconv_cuda_array *written = gc_job_written(job);
    gpuconv_status status = gc_job_check_array(&job->signal, "job.signal", written == &job->signal, error);
    if (!status)
        status = gc_job_check_array(&job->output, "job.output", written == &job->output, error);
    if (!status && uses_response(job))
        status = gc_job_check_array(&job->response, "job.response", written == &job->response, error);
    return status;
}

gpuconv_status gc_job_check(const gpuconv_cuda_job *job, int64_t taps, int64_t prepared_rows, gc_job_routes routes,
                            gc_job_shape *s, gpuconv_error *error) {
    if ((int)job->operation < GPUCONV_CUDA_CONVOLVE || job->operation > GPUCONV_CUDA_GRADIENT_RESPONSE)
        return refuse(error, "job", "operation", (int)job->operation, "a gpuconv_cuda_operation");
    gpuconv_status status = check_arrays(job, error);
    if (status)
        return status;
    if (job->group < 1)
        return refuse(error, "job", "group", job->group, "at least 1");
    if (job->offset < -GC_JOB_FRAMES_MAX || job->offset > GC_JOB_FRAMES_MAX)
        return refuse(error, "job", "offset", job->offset, "-2^40 to 2^40");
    *s = (gc_job_shape){.operation = job->operation,
                        .routes = routes,
                        .rows = job->signal.rows,
                        .batch = job->signal.rows,
                        .group = job->group < job->signal.rows ? job->group : job->signal.rows,
                        .responses = uses_response(job) ? job->response.rows : prepared_rows,
                        .taps = uses_response(job) ? job->response.frames : taps,
                        .signal_frames = job->signal.frames,
                        .output_frames = job->output.frames,
                        .offset = job->offset};
    if (routes.routes) {
        if (uses_response(job) && job->response.rows != routes.routes)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "job.response.rows is %lld; use %d, the routes of the prepared responses",
                           (long long)job->response.rows, routes.routes);
        return check_routed(job, s, error);
    }
    if (job->output.rows != job->signal.rows)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.output.rows is %lld; use %lld, the rows of job.signal",
                       (long long)job->output.rows, (long long)job->signal.rows);
    /* The last responses are not used if there are more of them than groups of rows, which is mostly a mistake. */
    if (uses_response(job) && job->response.rows > (job->signal.rows + s->group - 1) / s->group)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "job.response.rows is %lld, more than the %lld groups of rows of job.signal; use at most that",
                       (long long)job->response.rows, (long long)((job->signal.rows + s->group - 1) / s->group));
    return GPUCONV_OK;
}

gpuconv_status gc_job_check_pointers(const gpuconv_cuda_job *job, gpuconv_error *error) {
    const gpuconv_cuda_array *array[] = {&job->signal, &job->output, &job->response};
    const char *const name[] = {"job.signal", "job.output", "job.response"};
    const gpuconv_cuda_array *written = gc_job_written(job);
    for (int i = 0; i < (uses_response(job) ? 3 : 2); i++) {
        gpuconv_status status = gc_job_check_data(array[i], name[i], error);
        if (status)
            return status;
        if (array[i] != written && array[i]->data == written->data)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is also the array that is written; use other memory",
                           name[i]);
    }
    if ((uintptr_t)job->gain % sizeof(float))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.gain is %p; use an address aligned to 4 bytes",
                       (const void *)job->gain);
    return GPUCONV_OK;
}
