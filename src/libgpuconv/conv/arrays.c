/* The public functions of gpuconv_arrays.h: checks, the same for every backend (rows_job.c), and the call of the
 * place's backend. */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MAX (INT64_C(1) << 30)
enum { CHANNELS_MAX = 1 << 20 };

_Static_assert(sizeof(gc_job_shape) == 4 * sizeof(int) + 17 * sizeof(int64_t), "a shape has no padding");

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

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* Reads a caller's job, of this version or an older one. */
static gpuconv_status read_job(const gpuconv_arrays_job *from, gpuconv_arrays_job *job, gpuconv_error *error) {
    *job = gpuconv_arrays_job_default();
    const size_t first_size = GC_SIZE_UP_TO(gpuconv_arrays_job, prepared); /* NOLINT(bugprone-sizeof-expression) */
    const gc_sized_struct own = {job, sizeof *job, first_size, "gpuconv_arrays_job"};
    return gc_sized_struct_read(&own, from, error);
}

/* Returns rows like those of an array, one after the other. */
static gpuconv_rows adjacent_rows(const gpuconv_rows *like) {
    gpuconv_rows made = gpuconv_rows_of_floats(NULL, like->rows, like->frames);
    made.type = like->type;
    return made;
}

/* Checks a job that a backend computes as one, but for its pointers, and plans it. */
static gpuconv_status plan_whole(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, gc_job_plan *plan,
                                 gpuconv_error *error) {
    plan->arrays = arrays;
    plan->prepared = job->prepared;
    const gpuconv_status status = gc_job_check(arrays, job, &plan->shape, error);
    return status ? status : arrays->executor->plan(job, plan, error);
}

/* Checks and plans a GRADIENT_BOTH: as one job if the backend has an algorithm for it that is faster than two jobs. */
static gpuconv_status plan_both(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan,
                                gpuconv_error *error) {
    gpuconv_arrays_job part[2];
    const gpuconv_status whole = plan_whole(arrays, job, &plan->whole, error);
    if (whole && whole != GPUCONV_ERROR_UNSUPPORTED)
        return whole;
    gc_job_split(job, part);
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        const gpuconv_status status = plan_whole(arrays, &part[i], &plan->part[i], error);
        if (status)
            return status;
        seconds += plan->part[i].how.seconds;
    }
    plan->split = whole || seconds < plan->whole.how.seconds;
    return GPUCONV_OK;
}

static gpuconv_status plan_operation(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan,
                                     gpuconv_error *error) {
    return job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH ? plan_both(arrays, job, plan, error)
                                                          : plan_whole(arrays, job, &plan->whole, error);
}

/* Returns whether a row may be shorter than its array. */
static bool is_ragged(const gpuconv_rows *rows) {
    return rows->starts || rows->lengths;
}

/* Returns the bytes of the transforms that a job shares with the other one of a pair: CONVOLVE, and GRADIENT_BOTH of
 * the same arrays whose gradients have adjacent rows. Both keep the same ones, or none. */
static int64_t shared_transforms(gpuconv_arrays *arrays, const gpuconv_arrays_job *job,
                                 const gpuconv_arrays_plan *plan) {
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    const gc_rows_plan *own = &plan->whole.how;
    gpuconv_arrays_job job_of_other = *job;
    gpuconv_arrays_plan other = {.split = false};
    if (plan->split || !own->kept || is_ragged(&job->signal) || is_ragged(&job->output) || is_ragged(&job->response))
        return 0;
    job_of_other.operation = convolve ? GPUCONV_ARRAYS_GRADIENT_BOTH : GPUCONV_ARRAYS_CONVOLVE;
    job_of_other.signal_gradient = adjacent_rows(&job->signal);
    job_of_other.response_gradient = adjacent_rows(&job->response);
    if (plan_operation(arrays, &job_of_other, &other, NULL) || other.split)
        return 0;
    const int64_t kept = convolve ? other.whole.how.kept : shared_transforms(arrays, &job_of_other, &other);
    return kept == own->kept && other.whole.how.points == own->points ? kept : 0;
}

/* Checks and plans any job of this version. with_transforms: job.transforms may be used; this plans the other job of
 * the pair, too. */
static gpuconv_status plan_job(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, bool with_transforms,
                               gpuconv_arrays_plan *plan, gpuconv_error *error) {
    const gpuconv_status status = plan_operation(arrays, job, plan, error);
    if (!status)
        plan->whole.how.kept = with_transforms ? shared_transforms(arrays, job, plan) : 0;
    plan->bytes = plan->split ? gc_max(plan->part[0].how.bytes, plan->part[1].how.bytes) : plan->whole.how.bytes;
    return status;
}

/* Runs a planned job of this version. */
static gpuconv_status run_job(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job, void *workspace,
                              size_t bytes, struct CUstream_st *stream, gpuconv_error *error) {
    const gc_rows_executor *e = plan->whole.arrays->executor;
    gpuconv_arrays_job part[2];
    gpuconv_status status = gc_job_check_pointers(job, error);
    if (status || !plan->split)
        return status ? status : e->run(&plan->whole, job, workspace, bytes, stream, error);
    gc_job_split(job, part);
    for (int i = 0; i < 2 && !status; i++)
        status = e->run(&plan->part[i], &part[i], workspace, bytes, stream, error);
    return status;
}

/* Writes the reason of a plan. */
static gpuconv_status describe_job(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error) {
    const gc_rows_executor *e = plan->whole.arrays->executor;
    gpuconv_arrays_job part[2];
    if (!plan->split)
        return e->describe(job, &plan->whole, error);
    gc_job_split(job, part);
    for (int i = 0; i < 2; i++) {
        const gpuconv_status status = e->describe(&part[i], &plan->part[i], error);
        if (status)
            return status;
    }
    gc_format(plan->whole.reason, sizeof plan->whole.reason, "by the signal: %.110s; by the response: %.110s",
              plan->part[0].reason, plan->part[1].reason);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_arrays_workspace(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, size_t *bytes,
                                        gpuconv_error *error) {
    gpuconv_arrays_job own;
    gpuconv_arrays_plan plan = {.split = false};
    if (!gc_begin(bytes, arrays, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = read_job(job, &own, error);
    if (!status)
        status = plan_job((gpuconv_arrays *)arrays, &own, false, &plan, error); /* changes nothing of the place */
    *bytes = status ? 0 : (size_t)plan.bytes;
    return status;
}

gpuconv_status gpuconv_arrays_run(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *workspace, size_t bytes,
                                  struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_arrays_job own;
    gpuconv_arrays_plan plan = {.split = false};
    if (!arrays)
        return gc_fail_null(error, __func__);
    gpuconv_status status = read_job(job, &own, error);
    if (!status)
        status = plan_job(arrays, &own, own.transforms != NULL, &plan, error);
    return status ? status : run_job(&plan, &own, workspace, bytes, stream, error);
}

/* ---- Plans of jobs ----------------------------------------------------------------------------------------------- */

gpuconv_status gpuconv_arrays_plan_new(gpuconv_arrays *arrays, const gpuconv_arrays_job *job,
                                       gpuconv_arrays_plan **plan, gpuconv_error *error) {
    gpuconv_arrays_job own;
    if (!gc_begin(plan, arrays, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = read_job(job, &own, error);
    gpuconv_arrays_plan *made = status ? NULL : gc_calloc(1, sizeof *made);
    if (!status && !made)
        status = gc_fail_memory(error, "the plan of a job");
    if (!status)
        status = plan_job(arrays, &own, true, made, error);
    if (!status)
        status = describe_job(&own, made, error);
    if (status)
        free(made);
    else
        *plan = made;
    return status;
}

size_t gpuconv_arrays_plan_workspace(const gpuconv_arrays_plan *plan) {
    return plan ? (size_t)plan->bytes : 0;
}

size_t gpuconv_arrays_plan_transforms(const gpuconv_arrays_plan *plan) {
    return plan ? (size_t)plan->whole.how.kept : 0;
}

const char *gpuconv_arrays_plan_reason(const gpuconv_arrays_plan *plan) {
    return plan ? plan->whole.reason : "";
}

gpuconv_status gpuconv_arrays_plan_run(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job, void *workspace,
                                       size_t bytes, struct CUstream_st *stream, gpuconv_error *error) {
    gpuconv_arrays_job own;
    gc_job_shape shape;
    if (!plan)
        return gc_fail_null(error, __func__);
    gpuconv_status status = read_job(job, &own, error);
    if (!status)
        status = gc_job_check(plan->whole.arrays, &own, &shape, error);
    if (!status && (own.prepared != plan->whole.prepared || memcmp(&shape, &plan->whole.shape, sizeof shape) != 0))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "job has other shapes, types or options than the one that was planned; make a plan for it");
    return status ? status : run_job(plan, &own, workspace, bytes, stream, error);
}

void gpuconv_arrays_plan_free(gpuconv_arrays_plan *plan) {
    free(plan);
}

/* ---- Sequences --------------------------------------------------------------------------------------------------- */

static gpuconv_status check_sequences(const gpuconv_arrays *arrays, const gpuconv_sequences *s, gpuconv_error *error) {
    if (s->channels < 1 || s->channels > GC_JOB_ROWS_MAX || s->sequences < 1 ||
        s->sequences > GC_JOB_ROWS_MAX / s->channels)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%lld sequences of %lld channels; use 1 to 2^30 rows",
                       (long long)s->sequences, (long long)s->channels);
    if (s->frames < 1 || s->frames > GC_JOB_FRAMES_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "frames is %lld; use 1 to 2^40", (long long)s->frames);
    if (s->own < 0 || s->own > s->channels || s->taps < 0 || s->taps > GC_JOB_FRAMES_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "own is %lld and taps %lld; use 0 to %lld and 0 to 2^40",
                       (long long)s->own, (long long)s->taps, (long long)s->channels);
    if (s->classes < 1 || s->classes > GPUCONV_SEQUENCE_CLASSES_MAX)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "classes is %d; use 1 to %d", s->classes,
                       GPUCONV_SEQUENCE_CLASSES_MAX);
    for (int i = 0; i < s->classes; i++)
        if (s->bounds[i] <= (i ? s->bounds[i - 1] : 0))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "bounds[%d] is %lld; use numbers that ascend from 1", i,
                           (long long)s->bounds[i]);
    if (!s->output)
        return GPUCONV_OK;
    const gpuconv_status status = gc_rows_check(arrays, s->output, "output", true, error);
    return status || (s->output->rows == s->channels && s->output->frames == s->frames)
               ? status
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "output has %lld rows of %lld frames; use %lld of %lld",
                         (long long)s->output->rows, (long long)s->output->frames, (long long)s->channels,
                         (long long)s->frames);
}

gpuconv_status gpuconv_sequences_sort(const gpuconv_arrays *arrays, const gpuconv_sequences *sequences, int64_t *table,
                                      struct CUstream_st *stream, gpuconv_error *error) {
    const bool given = arrays && sequences && table && sequences->offsets && sequences->bounds &&
                       (!sequences->output || sequences->output->data);
    const gpuconv_status status = given ? check_sequences(arrays, sequences, error) : gc_fail_null(error, __func__);
    return status ? status : arrays->executor->sort(arrays, sequences, table, stream, error);
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
    gpuconv_status status = gc_rows_check(arrays, response, "response", false, error);
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
    const gpuconv_status status = gc_rows_check(arrays, response, "response", false, error);
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
    gpuconv_status status = gc_rows_check(arrays, response, "response", false, error);
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
    const gpuconv_status status = gc_rows_check(s->arrays, a, name, written, error);
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
