/* Checks of arrays and of jobs on them (gpuconv_arrays.h), the same for every backend. Every message names the field,
 * its value, and the values that fit. */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"

#include <stdlib.h>

enum { GPU_STEPS = 1 << 29 }; /* the limit of gck_rows */

/* ---- Checks of arrays -------------------------------------------------------------------------------------------- */

static gpuconv_status refuse(gpuconv_error *error, const char *name, const char *field, int64_t value,
                             const char *instead) {
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is %lld; use %s", name, field, (long long)value, instead);
}

/* Returns whether rows of more than one element each have no element in common. */
static bool apart(const gpuconv_rows *a) {
    const int64_t stride = llabs(a->stride), step = llabs(a->step);
    return a->rows == 1 || stride > (a->frames - 1) * step || (stride && step > (a->rows - 1) * stride);
}

/* Checks an array at a place. name: "job.signal", for messages. written: whether it is the array that is written. */
static gpuconv_status check_rows(const gpuconv_arrays *place, const gpuconv_rows *a, const char *name, bool written,
                                 gpuconv_error *error) {
    static const char size[] = "elements of an array of less than 2^63 bytes";
    if ((int)a->type < GPUCONV_SAMPLE_F32 || a->type > GPUCONV_SAMPLE_BF16)
        return refuse(error, name, "type", (int)a->type, "a gpuconv_sample_type");
    if (a->rows < 1 || a->rows > GC_JOB_ROWS_MAX)
        return refuse(error, name, "rows", a->rows, "1 to 2^30");
    if (a->frames < 1 || a->frames > GC_JOB_FRAMES_MAX)
        return refuse(error, name, "frames", a->frames, "1 to 2^40");
    if (place->device >= 0 && (a->step <= -GPU_STEPS || a->step >= GPU_STEPS))
        return refuse(error, name, "step", a->step, "less than 2^29 and more than -2^29 on a GPU");
    if (a->step < -INT64_MAX / 16 / a->frames || a->step > INT64_MAX / 16 / a->frames)
        return refuse(error, name, "step", a->step, size);
    if (written && !a->step && a->frames > 1)
        return refuse(error, name, "step", a->step, "another step for an array that is written");
    if (a->starts)
        return GPUCONV_OK;
    if (a->stride < (place->device < 0 ? -INT64_MAX / 16 / a->rows : 0) || a->stride > INT64_MAX / 16 / a->rows)
        return refuse(error, name, "stride", a->stride, place->device < 0 ? size : "0 or more elements");
    if (written && !apart(a))
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "%s.stride is %lld, but rows of %lld frames are written; use rows that do not overlap, or starts", name,
            (long long)a->stride, (long long)a->frames);
    return GPUCONV_OK;
}

/* Checks that the pointers of an array are there and aligned to a sample. */
static gpuconv_status check_data(const gpuconv_rows *a, const char *name, gpuconv_error *error) {
    if (!a->data)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is NULL; use memory of the place", name);
    if ((uintptr_t)a->data % (uintptr_t)gc_job_sample_bytes(a->type))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is %p; use an address aligned to a sample, %d bytes",
                       name, a->data, gc_job_sample_bytes(a->type));
    const uintptr_t whole = _Alignof(int64_t);
    if ((uintptr_t)a->starts % whole || (uintptr_t)a->lengths % whole)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is %p; use an address aligned to %d bytes", name,
                       (uintptr_t)a->starts % whole ? "starts" : "lengths",
                       (const void *)((uintptr_t)a->starts % whole ? a->starts : a->lengths), (int)whole);
    return GPUCONV_OK;
}

gpuconv_status gc_rows_check(const gpuconv_arrays *place, const gpuconv_rows *a, const char *name, bool written,
                             gpuconv_error *error) {
    const gpuconv_status status = check_rows(place, a, name, written, error);
    return status ? status : check_data(a, name, error);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

void gpuconv_arrays_job_init(gpuconv_arrays_job *job, size_t size) {
    const gpuconv_arrays_job defaults = {.size = sizeof defaults, .group = 1};
    gc_sized_struct_init(job, size, &defaults, sizeof defaults);
}

const gpuconv_rows *gc_job_written(const gpuconv_arrays_job *job) {
    switch (job->operation) {
    case GPUCONV_ARRAYS_CONVOLVE:
        return &job->output;
    case GPUCONV_ARRAYS_GRADIENT_SIGNAL:
        return &job->signal;
    case GPUCONV_ARRAYS_GRADIENT_BOTH:
        return &job->signal_gradient;
    default:
        return &job->response;
    }
}

void gc_job_split(const gpuconv_arrays_job *job, gpuconv_arrays_job part[2]) {
    part[0] = part[1] = *job;
    part[0].operation = GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    part[0].signal = job->signal_gradient;
    part[0].accumulate = false;
    part[1].operation = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    part[1].response = job->response_gradient;
}

static const char *const names[] = {"job.signal", "job.output", "job.response"};

/* Returns whether the job uses its field `response`. */
static bool uses_response(const gpuconv_arrays_job *job) {
    return !job->prepared || job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
}

/* Returns the arrays of a job whose step is not 1. */
static int64_t spread_arrays(const gpuconv_arrays_job *job) {
    const bool both = job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const bool response = both ? !job->prepared : uses_response(job);
    return (job->signal.step != 1 ? GC_SIGNAL : 0) | (job->output.step != 1 ? GC_OUTPUT : 0) |
           (response && job->response.step != 1 ? GC_RESPONSE : 0) |
           (both && job->signal_gradient.step != 1 ? GC_SIGNAL_GRADIENT : 0) |
           (both && job->response_gradient.step != 1 ? GC_RESPONSE_GRADIENT : 0);
}

/* Checks the numbers of rows against the routes. */
static gpuconv_status check_routed(const gpuconv_arrays_job *job, gc_job_shape *s, gpuconv_error *error) {
    if (uses_response(job) && job->response.rows != s->routes.routes)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "job.response.rows is %lld; use %d, the routes of the prepared responses",
                       (long long)job->response.rows, s->routes.routes);
    if (job->signal.rows % s->routes.inputs)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "job.signal.rows is %lld; use a multiple of the %d inputs of the prepared responses",
                       (long long)job->signal.rows, s->routes.inputs);
    s->batch = job->signal.rows / s->routes.inputs;
    const int64_t outputs = s->batch * s->routes.outputs;
    if (job->output.rows != outputs)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.output.rows is %lld; use %lld, %lld times %d outputs",
                       (long long)job->output.rows, (long long)outputs, (long long)s->batch, s->routes.outputs);
    if (job->group != 1)
        return refuse(error, "job", "group", job->group, "1 with prepared responses that have routes");
    s->responses = s->routes.routes;
    return GPUCONV_OK;
}

/* Checks the numbers of rows of a job without routes. */
static gpuconv_status check_unrouted(const gpuconv_arrays_job *job, const gc_job_shape *s, gpuconv_error *error) {
    const int64_t groups = gc_divide_up(job->signal.rows, s->group);
    if (job->output.rows != job->signal.rows)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.output.rows is %lld; use %lld, the rows of job.signal",
                       (long long)job->output.rows, (long long)job->signal.rows);
    /* The last responses are not used if there are more of them than groups of rows, which is mostly a mistake. */
    if (uses_response(job) && s->responses > groups)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "job.response.rows is %lld, for more than the %lld groups of rows of job.signal; use at most %lld",
            (long long)job->response.rows, (long long)groups, (long long)groups * (long long)gc_max(1, s->blocks));
    return GPUCONV_OK;
}

/* Checks a filter that changes with time, and fills its part of *s. */
static gpuconv_status check_varying(const gpuconv_arrays_job *job, gc_job_shape *s, gpuconv_error *error) {
    if ((int)job->interpolation < GPUCONV_ARRAYS_HOLD || job->interpolation > GPUCONV_ARRAYS_LINEAR)
        return refuse(error, "job", "interpolation", (int)job->interpolation, "a gpuconv_arrays_interpolation");
    if (!job->hop)
        return job->interpolation ? refuse(error, "job", "interpolation", (int)job->interpolation, "0 without a hop")
                                  : GPUCONV_OK;
    if (job->hop < 0 || job->hop > GC_JOB_ROWS_MAX)
        return refuse(error, "job", "hop", job->hop, "0 to 2^30");
    if (job->prepared)
        return refuse(error, "job", "hop", job->hop, "0 with prepared responses");
    s->hop = job->hop;
    s->blocks = gc_divide_up(job->signal.frames, job->hop);
    s->linear = job->interpolation == GPUCONV_ARRAYS_LINEAR;
    s->narrow = gc_job_written(job)->type != GPUCONV_SAMPLE_F32;
    s->responses = job->response.rows / s->blocks;
    return job->response.rows % s->blocks || s->blocks > GC_JOB_ROWS_MAX
               ? gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "job.response.rows is %lld; use a multiple of the %lld blocks of job.signal, at most 2^30",
                         (long long)job->response.rows, (long long)s->blocks)
               : GPUCONV_OK;
}

/* Returns whether signal and output have samples of 16 bits that kernels can load eight at a time. */
static bool has_eights(const gpuconv_arrays_job *job) {
    const gpuconv_rows *x = &job->signal, *y = &job->output;
    return x->type != GPUCONV_SAMPLE_F32 && x->type == y->type && x->step == 1 && y->step == 1 && x->stride % 8 == 0 &&
           y->stride % 8 == 0 && !x->starts && !y->starts;
}

static bool has_halves(const gpuconv_arrays_job *job) {
    return has_eights(job) && job->response.type == job->signal.type && job->response.step == 1;
}

/* Returns whether a job convolves halves and does no more (gc_job_shape). */
static bool has_bare_halves(const gpuconv_arrays_job *job) {
    return has_eights(job) && job->signal.type == GPUCONV_SAMPLE_F16 && uses_response(job) && !job->gain &&
           !job->accumulate && !job->hop && !job->pre && !job->post && !job->skip;
}

/* Checks the factors of the samples of `of`. */
static gpuconv_status check_gate(const gpuconv_arrays *place, const gpuconv_rows *gate, const gpuconv_rows *of,
                                 const char *name, gpuconv_error *error) {
    const gpuconv_status status = check_rows(place, gate, name, false, error);
    if (status)
        return status;
    if (gate->rows != of->rows || gate->frames != of->frames)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s has %lld rows of %lld frames; use %lld of %lld", name,
                       (long long)gate->rows, (long long)gate->frames, (long long)of->rows, (long long)of->frames);
    if (gate->step != 1)
        return refuse(error, name, "step", gate->step, "1");
    return gate->lengths ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.lengths is given; use NULL", name) : GPUCONV_OK;
}

/* Checks the gates of a job and fills their part of *s. */
static gpuconv_status check_gates(const gpuconv_arrays *place, const gpuconv_arrays_job *job, gc_job_shape *s,
                                  gpuconv_error *error) {
    const gpuconv_rows *x = &job->signal, *y = &job->output;
    if (!job->pre && !job->post && !job->skip)
        return GPUCONV_OK;
    if (job->hop)
        return refuse(error, "job", "hop", job->hop, "0 with pre, post or skip");
    if (job->skip && s->routes.routes)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.skip is given; use NULL with responses that have routes");
    if ((double)x->rows * (double)x->frames + (double)y->rows * (double)y->frames > 0x1p56)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "job.signal and job.output have more than 2^56 frames together; "
                       "use fewer with pre, post or skip");
    gpuconv_status status = job->pre ? check_gate(place, job->pre, x, "job.pre", error) : GPUCONV_OK;
    if (!status && job->post)
        status = check_gate(place, job->post, y, "job.post", error);
    const bool alike = !s->spread && x->type == y->type && (!job->pre || job->pre->type == x->type) &&
                       (!job->post || job->post->type == x->type);
    s->gates = (job->pre ? GC_GATE_PRE : 0) | (job->post ? GC_GATE_POST : 0) | (job->skip ? GC_GATE_SKIP : 0) |
               (alike ? GC_GATES_ALIKE : 0);
    s->halves = 0;
    return status;
}

/* Checks an array that GRADIENT_BOTH writes against the one whose gradient it is. */
static gpuconv_status check_gradient(const gpuconv_arrays *place, const gpuconv_rows *a, const char *name, int64_t rows,
                                     int64_t frames, gpuconv_error *error) {
    const gpuconv_status status = check_rows(place, a, name, true, error);
    if (status || (a->rows == rows && a->frames == frames))
        return status;
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s has %lld rows of %lld frames; use %lld of %lld", name,
                   (long long)a->rows, (long long)a->frames, (long long)rows, (long long)frames);
}

/* Checks a GRADIENT_BOTH by its two jobs. The gradients come first, because the jobs have them in other fields. */
static gpuconv_status check_both(const gpuconv_arrays *place, const gpuconv_arrays_job *job, gc_job_shape *s,
                                 gpuconv_error *error) {
    const gpuconv_rows *x = &job->signal, *y = &job->output, *gx = &job->signal_gradient;
    gpuconv_arrays_job part[2];
    gc_job_shape second;
    gc_job_split(job, part);
    gpuconv_status status = check_gradient(place, gx, "job.signal_gradient", x->rows, x->frames, error);
    if (!status)
        status = gc_job_check(place, &part[0], s, error);
    if (!status)
        status =
            check_gradient(place, &job->response_gradient, "job.response_gradient",
                           s->routes.routes ? s->routes.routes : s->responses * gc_max(1, s->blocks), s->taps, error);
    if (!status)
        status = gc_job_check(place, &part[1], &second, error);
    s->operation = job->operation;
    s->halves = x->type == gx->type && job->response_gradient.type == gx->type ? s->halves : 0;
    s->plain =
        x->type == y->type && x->type == gx->type && (job->prepared || x->type == job->response.type) && !job->gain;
    s->spread = spread_arrays(job);
    return status;
}

gpuconv_status gc_job_check(const gpuconv_arrays *place, const gpuconv_arrays_job *job, gc_job_shape *s,
                            gpuconv_error *error) {
    const gpuconv_responses *kept = job->prepared;
    if ((int)job->operation < GPUCONV_ARRAYS_CONVOLVE || job->operation > GPUCONV_ARRAYS_GRADIENT_BOTH)
        return refuse(error, "job", "operation", (int)job->operation, "a gpuconv_arrays_operation");
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH)
        return check_both(place, job, s, error);
    const gpuconv_rows *array[] = {&job->signal, &job->output, &job->response};
    for (int i = 0; i < (uses_response(job) ? 3 : 2); i++) {
        const gpuconv_status status = check_rows(place, array[i], names[i], array[i] == gc_job_written(job), error);
        if (status)
            return status;
    }
    if (job->group < 1)
        return refuse(error, "job", "group", job->group, "at least 1");
    if (job->offset < -GC_JOB_FRAMES_MAX || job->offset > GC_JOB_FRAMES_MAX)
        return refuse(error, "job", "offset", job->offset, "-2^40 to 2^40");
    if (kept && kept->device != place->device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.prepared is on device %d, the job on device %d; -1: the CPU",
                       kept->device, place->device);
    *s = (gc_job_shape){.operation = job->operation,
                        .routes = kept ? kept->routes : (gc_job_routes){0},
                        .rows = job->signal.rows,
                        .batch = job->signal.rows,
                        .group = job->group < job->signal.rows ? job->group : job->signal.rows,
                        .responses = uses_response(job) ? job->response.rows : kept->rows,
                        .taps = uses_response(job) ? job->response.frames : kept->taps,
                        .signal_frames = job->signal.frames,
                        .output_frames = job->output.frames,
                        .offset = job->offset,
                        .halves = uses_response(job) && has_halves(job) ? (int64_t)job->signal.type : 0,
                        .bare_halves = has_bare_halves(job),
                        .spread = spread_arrays(job)};
    gpuconv_status status = check_varying(job, s, error);
    if (!status)
        status = check_gates(place, job, s, error);
    if (status)
        return status;
    return s->routes.routes ? check_routed(job, s, error) : check_unrouted(job, s, error);
}

/* Checks the pointers of a GRADIENT_BOTH by its two jobs, and that the gradients are not in the memory that they come
 * from. */
static gpuconv_status check_pointers_of_both(const gpuconv_arrays_job *job, gpuconv_error *error) {
    const gpuconv_rows *gx = &job->signal_gradient, *gh = &job->response_gradient;
    gpuconv_arrays_job part[2];
    gc_job_split(job, part);
    gpuconv_status status = check_data(gx, "job.signal_gradient", error);
    if (!status)
        status = check_data(gh, "job.response_gradient", error);
    if (!status &&
        (gx->data == gh->data || gx->data == job->signal.data || (!job->prepared && gh->data == job->response.data)))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "job.%s.data is also that of another array of the job; use other memory",
                         gh->data == job->response.data ? "response_gradient" : "signal_gradient");
    for (int i = 0; i < 2 && !status; i++)
        status = gc_job_check_pointers(&part[i], error);
    return status;
}

gpuconv_status gc_job_check_pointers(const gpuconv_arrays_job *job, gpuconv_error *error) {
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH)
        return check_pointers_of_both(job, error);
    const gpuconv_rows *array[] = {&job->signal, &job->output, &job->response};
    const gpuconv_rows *written = gc_job_written(job);
    for (int i = 0; i < (uses_response(job) ? 3 : 2); i++) {
        gpuconv_status status = check_data(array[i], names[i], error);
        if (status)
            return status;
        if (array[i] != written && array[i]->data == written->data)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.data is also the array that is written; use other memory",
                           names[i]);
    }
    if ((uintptr_t)job->gain % sizeof(float) || (uintptr_t)job->skip % sizeof(float))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.%s is %p; use an address aligned to 4 bytes",
                       (uintptr_t)job->gain % sizeof(float) ? "gain" : "skip",
                       (const void *)((uintptr_t)job->gain % sizeof(float) ? job->gain : job->skip));
    const gpuconv_rows *gate[] = {job->pre, job->post};
    for (int i = 0; i < 2; i++) {
        const gpuconv_status status = gate[i] ? check_data(gate[i], i ? "job.post" : "job.pre", error) : GPUCONV_OK;
        if (status)
            return status;
        if (gate[i] && gate[i]->data == written->data)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "job.%s.data is also the array that is written; use other memory", i ? "post" : "pre");
    }
    return GPUCONV_OK;
}
