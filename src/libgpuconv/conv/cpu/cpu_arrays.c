/*
 * Arrays in host memory (gpuconv_arrays.h): the threads, prepared responses, and streamers, each of whose blocks is a
 * job (cpu_jobs.c).
 */
#include "cpu_arrays.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"

#include <stdlib.h>
#include <string.h>

typedef struct cpu_streamer {
    gpuconv_streamer base;
    gpuconv_responses *responses;
    int64_t history, frames; /* of a row of `window`: the last taps - 1 frames of the past, and the block */
    float *window;
} cpu_streamer;

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static void free_arrays(gpuconv_arrays *arrays) {
    gc_rows_free(&((gc_cpu_arrays *)arrays)->rows);
    free(arrays);
}

static gpuconv_status open_arrays(int threads, gpuconv_arrays **arrays, gpuconv_error *error) {
    if (threads < 0 || threads > 1024)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d threads: use 1 to 1024, or 0 for all cores", threads);
    gc_cpu_arrays *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "a convolver of arrays");
    made->base = (gpuconv_arrays){&gc_rows_cpu, -1};
    if (!gc_rows_init(&made->rows, threads)) {
        free_arrays(&made->base);
        return gc_fail_memory(error, "the threads of a convolver of arrays");
    }
    *arrays = &made->base;
    return GPUCONV_OK;
}

/* ---- Prepared responses ------------------------------------------------------------------------------------------ */

static void free_responses(gpuconv_responses *responses) {
    gc_cpu_responses *r = (gc_cpu_responses *)responses;
    for (int64_t i = 0; r->kept && i < r->base.rows; i++) {
        gc_kept_response_free_spectra(&r->kept[i]);
        if (!r->ir)
            free(r->kept[i].taps);
    }
    free(r->kept);
    gpuconv_ir_free(r->ir);
    free(r);
}

/* Copies a row to the taps of a response, with zeros up to `taps` frames. */
static gpuconv_status copy_taps(const gpuconv_rows *from, int64_t row, int64_t taps, gc_kept_response *kept,
                                gpuconv_error *error) {
    const gc_array array = gc_array_of_row(from, row);
    kept->taps = gc_calloc(taps, sizeof *kept->taps);
    if (!kept->taps)
        return gc_fail_memory(error, "a response");
    gc_row_gather(&array, 0, taps, kept->taps);
    return gc_all_finite(kept->taps, taps)
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_FORMAT, "the response has taps that are NaN or infinite");
}

/* Makes responses of `taps` frames: those of `ir`, which is held, or copies of the rows of an array. */
static gpuconv_status make_responses(const gpuconv_ir *ir, const gpuconv_rows *from, int64_t taps,
                                     gpuconv_responses **responses, gpuconv_error *error) {
    const int64_t rows = ir ? ir->planes : from->rows;
    if (taps > INT64_C(1) << GC_ROW_MAX_LOG2)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response.frames is %lld; use 1 to 2^%d on the CPU",
                       (long long)taps, GC_ROW_MAX_LOG2);
    gc_cpu_responses *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "prepared responses");
    *r = (gc_cpu_responses){{&gc_rows_cpu, -1, rows, taps, {0}}, gc_calloc(rows, sizeof *r->kept), NULL};
    if (ir) {
        r->ir = gc_ir_hold(ir);
        r->base.routes = (gc_job_routes){ir->inputs, ir->outputs, ir->routes};
    }
    gpuconv_status status = r->kept ? GPUCONV_OK : gc_fail_memory(error, "prepared responses");
    for (int64_t i = 0; i < rows && !status; i++)
        if (ir)
            r->kept[i].taps = ir->taps + i * taps;
        else
            status = copy_taps(from, i, taps, &r->kept[i], error);
    if (status)
        free_responses(&r->base);
    else
        *responses = &r->base;
    return status;
}

static gpuconv_status new_responses(const gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t frames,
                                    struct CUstream_st *stream, gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    (void)stream;
    return make_responses(NULL, response, response->frames, responses, error);
}

static gpuconv_status route_responses(const gpuconv_arrays *arrays, const gpuconv_ir *ir, int64_t frames,
                                      gpuconv_responses **responses, gpuconv_error *error) {
    (void)arrays;
    (void)frames;
    return make_responses(ir, NULL, ir->frames, responses, error);
}

static gpuconv_status update_responses(const gpuconv_arrays *arrays, gpuconv_responses *responses,
                                       const gpuconv_rows *response, struct CUstream_st *stream, gpuconv_error *error) {
    (void)arrays;
    (void)stream;
    gpuconv_responses *made;
    const gpuconv_status status = make_responses(NULL, response, responses->taps, &made, error);
    if (status)
        return status;
    gc_kept_response **kept = &((gc_cpu_responses *)responses)->kept, *old = *kept;
    *kept = ((gc_cpu_responses *)made)->kept;
    ((gc_cpu_responses *)made)->kept = old;
    free_responses(made);
    return GPUCONV_OK;
}

static int64_t responses_bytes(const gpuconv_responses *responses) {
    const gc_cpu_responses *r = (const gc_cpu_responses *)responses;
    int64_t floats = r->ir ? 0 : r->base.rows * r->base.taps;
    for (int64_t i = 0; i < r->base.rows; i++)
        for (int k = 0; k < 2 * (GC_FFT_MAX_LOG2 + 1); k++)
            floats += atomic_load(&r->kept[i].spectrum[k % 2][k / 2]) ? INT64_C(1) << k / 2 : 0;
    return floats * (int64_t)sizeof(float);
}

/* ---- Streamers --------------------------------------------------------------------------------------------------- */

static void free_streamer(gpuconv_streamer *streamer) {
    cpu_streamer *s = (cpu_streamer *)streamer;
    if (s->responses)
        free_responses(s->responses);
    free(s->window);
    free(s);
}

static gpuconv_status new_streamer(gpuconv_arrays *arrays, const gpuconv_rows *response, int64_t channels,
                                   int64_t block, struct CUstream_st *stream, gpuconv_streamer **streamer,
                                   gpuconv_error *error) {
    const int64_t history = response->frames - 1;
    cpu_streamer *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "a streamer");
    *s = (cpu_streamer){{arrays, channels, block}, NULL, history, history + block, NULL};
    s->window = gc_calloc(channels * s->frames, sizeof *s->window);
    const gpuconv_status status = s->window ? new_responses(arrays, response, block, stream, &s->responses, error)
                                            : gc_fail_memory(error, "a streamer");
    if (status)
        free_streamer(&s->base);
    else
        *streamer = &s->base;
    return status;
}

static gpuconv_status check_no_stream(const struct CUstream_st *stream, gpuconv_error *error) {
    return stream ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "stream is %p; use NULL on the CPU", (const void *)stream)
                  : GPUCONV_OK;
}

/* Convolves the past and the block: one job. */
static gpuconv_status process(gpuconv_streamer *streamer, const gpuconv_rows *in, const gpuconv_rows *out,
                              struct CUstream_st *stream, gpuconv_error *error) {
    cpu_streamer *s = (cpu_streamer *)streamer;
    const int64_t channels = s->base.channels, block = s->base.block;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(s->window, channels, s->frames);
    job.output = *out;
    job.offset = s->history;
    job.prepared = s->responses;
    for (int64_t c = 0; c < channels; c++) {
        const gc_array row = gc_array_of_row(in, c);
        gc_row_gather(&row, 0, block, s->window + c * s->frames + s->history);
    }
    gc_job_shape shape;
    gpuconv_status status = check_no_stream(stream, error);
    if (!status)
        status = gc_job_check(s->base.arrays, &job, &shape, error);
    if (!status)
        status = gc_cpu_run_job((gc_cpu_arrays *)s->base.arrays, &job, &shape, error);
    for (int64_t c = 0; c < channels; c++)
        memmove(s->window + c * s->frames, s->window + c * s->frames + block, (size_t)s->history * sizeof *s->window);
    return status;
}

static gpuconv_status reset(gpuconv_streamer *streamer, struct CUstream_st *stream, gpuconv_error *error) {
    (void)stream;
    (void)error;
    cpu_streamer *s = (cpu_streamer *)streamer;
    memset(s->window, 0, (size_t)(s->base.channels * s->frames) * sizeof *s->window);
    return GPUCONV_OK;
}

/* Rows are planned one by one while they are computed (row_plan.c). */
static gpuconv_status plan_job(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error) {
    (void)job;
    (void)plan;
    (void)error;
    return GPUCONV_OK;
}

static gpuconv_status run_job(const gpuconv_arrays_plan *plan, const gpuconv_arrays_job *job, void *workspace,
                              size_t bytes, struct CUstream_st *stream, gpuconv_error *error) {
    (void)workspace;
    (void)bytes;
    const gpuconv_status status = check_no_stream(stream, error);
    return status ? status : gc_cpu_run_job((gc_cpu_arrays *)plan->arrays, job, &plan->shape, error);
}

const gc_rows_executor gc_rows_cpu = {
    .open = open_arrays,
    .free = free_arrays,
    .plan = plan_job,
    .describe = gc_cpu_describe_job,
    .run = run_job,
    .new_responses = new_responses,
    .route_responses = route_responses,
    .update_responses = update_responses,
    .responses_bytes = responses_bytes,
    .free_responses = free_responses,
    .new_streamer = new_streamer,
    .process = process,
    .reset = reset,
    .free_streamer = free_streamer,
};
