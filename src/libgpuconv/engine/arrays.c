/* The public functions of gpuconv_arrays.h: checks, the same for every backend, and the call of the place's backend.
 * Every message names the field, its value, and the values that fit. */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"

#include <stddef.h>
#include <stdlib.h>

#define BLOCK_MAX (INT64_C(1) << 30)
enum { CHANNELS_MAX = 1 << 20, GPU_STEPS = 1 << 29 }; /* GPU_STEPS: the limit of gck_rows */

/* ---- Places ------------------------------------------------------------------------------------------------------ */

gpuconv_status gpuconv_arrays_new_cpu(int threads, gpuconv_arrays **arrays, gpuconv_error *error) {
    return gc_begin(arrays, arrays, __func__, error)
               ? gc_backend_find(GPUCONV_BACKEND_CPU)->rows->open(threads, arrays, error)
               : GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gpuconv_arrays_new_cuda(int device, gpuconv_arrays **arrays, gpuconv_error *error) {
    const gc_backend *cuda = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!gc_begin(arrays, arrays, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    return cuda ? cuda->rows->open(device, arrays, error) : gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
}

int gpuconv_arrays_device(const gpuconv_arrays *arrays) {
    return arrays ? arrays->device : -1;
}

void gpuconv_arrays_free(gpuconv_arrays *arrays) {
    if (arrays)
        arrays->executor->free(arrays);
}

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

/* Checks an array and its pointers. */
static gpuconv_status check_array(const gpuconv_arrays *place, const gpuconv_rows *a, const char *name, bool written,
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
    return job->operation == GPUCONV_ARRAYS_CONVOLVE          ? &job->output
           : job->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? &job->signal
                                                              : &job->response;
}

static const char *const names[] = {"job.signal", "job.output", "job.response"};

/* Returns whether the job uses its field `response`. */
static bool uses_response(const gpuconv_arrays_job *job) {
    return !job->prepared || job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
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

/* Returns whether the samples of a job are halves or bfloat16 that kernels can load eight at a time. */
static bool has_halves(const gpuconv_arrays_job *job) {
    const gpuconv_rows *x = &job->signal, *y = &job->output, *h = &job->response;
    const bool whole = x->stride % 8 == 0 && y->stride % 8 == 0 && !x->starts && !y->starts;
    return x->type != GPUCONV_SAMPLE_F32 && x->type == y->type && x->type == h->type && x->step == 1 && y->step == 1 &&
           h->step == 1 && whole;
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
    const bool adjacent = x->step == 1 && y->step == 1 && (!uses_response(job) || job->response.step == 1);
    const bool alike = adjacent && x->type == y->type && (!job->pre || job->pre->type == x->type) &&
                       (!job->post || job->post->type == x->type);
    s->gates = (job->pre ? GC_GATE_PRE : 0) | (job->post ? GC_GATE_POST : 0) | (job->skip ? GC_GATE_SKIP : 0) |
               (alike ? GC_GATES_ALIKE : 0);
    s->halves = 0;
    return status;
}

gpuconv_status gc_job_check(const gpuconv_arrays *place, const gpuconv_arrays_job *job, gc_job_shape *s,
                            gpuconv_error *error) {
    const gpuconv_responses *kept = job->prepared;
    if ((int)job->operation < GPUCONV_ARRAYS_CONVOLVE || job->operation > GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return refuse(error, "job", "operation", (int)job->operation, "a gpuconv_arrays_operation");
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
                        .halves = uses_response(job) && has_halves(job)};
    gpuconv_status status = check_varying(job, s, error);
    if (!status)
        status = check_gates(place, job, s, error);
    if (status)
        return status;
    return s->routes.routes ? check_routed(job, s, error) : check_unrouted(job, s, error);
}

gpuconv_status gc_job_check_pointers(const gpuconv_arrays_job *job, gpuconv_error *error) {
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

/* Reads a caller's job, of this version or an older one. */
static gpuconv_status read_job(const gpuconv_arrays_job *from, gpuconv_arrays_job *job, gpuconv_error *error) {
    *job = gpuconv_arrays_job_default();
    const size_t first_size = GC_SIZE_UP_TO(gpuconv_arrays_job, prepared); /* NOLINT(bugprone-sizeof-expression) */
    const gc_sized_struct own = {job, sizeof *job, first_size, "gpuconv_arrays_job"};
    return gc_sized_struct_read(&own, from, error);
}

gpuconv_status gpuconv_arrays_workspace(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, size_t *bytes,
                                        gpuconv_error *error) {
    gpuconv_arrays_job own;
    if (!gc_begin(bytes, arrays, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const gpuconv_status status = read_job(job, &own, error);
    return status ? status : arrays->executor->workspace(arrays, &own, bytes, error);
}

gpuconv_status gpuconv_arrays_run(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                                  struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_arrays_job own;
    const gpuconv_status status = arrays ? read_job(job, &own, error) : gc_fail_null(error, __func__);
    return status ? status : arrays->executor->run(arrays, &own, workspace, bytes, stream, error);
}

gpuconv_status gpuconv_arrays_plan(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, char *text, size_t size,
                                   gpuconv_error *error) {
    gpuconv_arrays_job own;
    const gpuconv_status status = arrays && text ? read_job(job, &own, error) : gc_fail_null(error, __func__);
    return status ? status : arrays->executor->plan(arrays, &own, text, size, error);
}

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

static gpuconv_status check_frames(int64_t frames, gpuconv_error *error) {
    return frames >= 1 && frames <= GC_JOB_FRAMES_MAX
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "frames is %lld; use 1 to 2^40", (long long)frames);
}

gpuconv_status gpuconv_responses_new(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                     struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    if (!gc_begin(responses, arrays && response ? arrays : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = check_array(arrays, response, "response", false, error);
    if (!status)
        status = check_frames(frames, error);
    return status ? status : arrays->executor->new_responses(arrays, response, frames, stream, responses, error);
}

gpuconv_status gpuconv_responses_route(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                       gpuconv_responses **responses, gpuconv_error *error) {
    if (!gc_begin(responses, arrays && ir ? arrays : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const gpuconv_status status = check_frames(frames, error);
    return status ? status : arrays->executor->route_responses(arrays, ir, frames, responses, error);
}

/* Checks that an array fits the responses that it replaces. */
static gpuconv_status check_update(const gpuconv_arrays *arrays, const gpuconv_responses *r,
                                   const gpuconv_rows *response, gpuconv_error *error) {
    const gpuconv_status status = check_array(arrays, response, "response", false, error);
    if (status)
        return status;
    if (r->device != arrays->device)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "responses are on device %d, arrays is of device %d", r->device,
                       arrays->device);
    if (r->routes.routes)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "responses have routes; make new ones with gpuconv_responses_route");
    if (response->rows != r->rows)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.rows is %lld; use %lld, as before",
                       (long long)response->rows, (long long)r->rows);
    if (response->frames > r->taps)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "response.frames is %lld; use at most %lld, for which the responses were made",
                       (long long)response->frames, (long long)r->taps);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_responses_update(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                        const gpuconv_rows *response, struct CUstream_st *stream,
                                        gpuconv_error *error) {
    const gpuconv_status status = arrays && responses && response ? check_update(arrays, responses, response, error)
                                                                  : gc_fail_null(error, __func__);
    return status ? status : arrays->executor->update_responses(arrays, responses, response, stream, error);
}

int64_t gpuconv_responses_bytes(const gpuconv_responses *responses) {
    return responses ? responses->executor->responses_bytes(responses) : 0;
}

void gpuconv_responses_free(gpuconv_responses *responses) {
    if (responses)
        responses->executor->free_responses(responses);
}

/* ---- Streamers --------------------------------------------------------------------------------------------------- */

/* Checks that an array has no rows of different lengths or places. */
static gpuconv_status check_even(const gpuconv_rows *a, const char *name, gpuconv_error *error) {
    return !a->starts && !a->lengths
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s.%s is given; use rows of equal length and a stride", name,
                         a->starts ? "starts" : "lengths");
}

gpuconv_status gpuconv_streamer_new(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                    int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                    gpuconv_error *error) {
    if (!gc_begin(streamer, arrays && response ? arrays : NULL, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = check_array(arrays, response, "response", false, error);
    if (!status)
        status = check_even(response, "response", error);
    if (status)
        return status;
    if (channels < 1 || channels > CHANNELS_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "channels is %lld; use 1 to %d", (long long)channels,
                       CHANNELS_MAX);
    if (block < 1 || block > BLOCK_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "block is %lld; use 1 to 2^30 frames", (long long)block);
    return arrays->executor->new_streamer(arrays, response, channels, block, stream, streamer, error);
}

static gpuconv_status check_block(const gpuconv_streamer *s, const gpuconv_rows *a, const char *name, bool written,
                                  gpuconv_error *error) {
    const gpuconv_status status = check_array(s->arrays, a, name, written, error);
    if (status)
        return status;
    if (a->rows != s->channels || a->frames != s->block)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s has %lld rows of %lld frames; use %lld rows of %lld", name,
                       (long long)a->rows, (long long)a->frames, (long long)s->channels, (long long)s->block);
    return check_even(a, name, error);
}

gpuconv_status gpuconv_streamer_process(gpuconv_streamer *s, const gpuconv_rows *in, const gpuconv_rows *out,
                                        struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_status status = s && in && out ? check_block(s, in, "in", false, error) : gc_fail_null(error, __func__);
    if (!status)
        status = check_block(s, out, "out", true, error);
    if (!status && in->data == out->data &&
        (in->type != out->type || in->stride != out->stride || in->step != out->step))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "out.data is in.data with another type, stride or step; use the same ones, or other memory");
    return status ? status : s->arrays->executor->process(s, in, out, stream, error);
}

gpuconv_status gpuconv_streamer_reset(gpuconv_streamer *s, struct CUstream_st *stream, gpuconv_error *error) {
    return s ? s->arrays->executor->reset(s, stream, error) : gc_fail_null(error, __func__);
}

void gpuconv_streamer_free(gpuconv_streamer *s) {
    if (s)
        s->arrays->executor->free_streamer(s);
}
