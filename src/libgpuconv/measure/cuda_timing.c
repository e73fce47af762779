/*
 * Times of convolutions, and peak rates, on samples in device memory. A measurement is the mean of a row of launches,
 * so that the host's time for a launch is hidden behind the previous one, as in use. Successive launches use different
 * copies of the samples, so that they are not in the cache.
 */
#include "cuda_timing.h"

#include "kernels/measure/measure.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "libgpuconv/conv/cuda/cuda_arrays.h"
#include "libgpuconv/conv/cuda/cuda_device.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row has as many launches as take a millisecond, at most ROW_MAX. */
enum { ROW_MAX = 48, RUNS = 10, COPIES = 3 };

/* One copy of the samples suffices if it has more bytes than any cache can keep a useful part of. */
static const int64_t beyond_caches = INT64_C(1) << 28;

void gc_cuda_timer_init(gc_cuda_timer *t, int device) {
    gc_cuda_resources_init(&t->resources, device);
    t->resources.err = gc_cuda_enter(device, &t->caller);
    t->stream = gc_cuda_stream(&t->resources);
    t->begin = gc_cuda_event(&t->resources, cudaEventDefault);
    t->end = gc_cuda_event(&t->resources, cudaEventDefault);
}

void gc_cuda_timer_fill(gc_cuda_timer *t, void *at, int64_t bytes, int fill) {
    GC_CUDA_TRY(t->resources.err, cudaMemsetAsync(at, fill, (size_t)bytes, t->stream));
    GC_CUDA_TRY(t->resources.err, cudaStreamSynchronize(t->stream));
}

void *gc_cuda_timer_memory(gc_cuda_timer *t, int64_t bytes, int fill) {
    void *p = gc_cuda_memory(&t->resources, bytes);
    gc_cuda_timer_fill(t, p, bytes, fill);
    return t->resources.err ? NULL : p;
}

void gc_cuda_timer_copy(gc_cuda_timer *t, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind) {
    GC_CUDA_TRY(t->resources.err, cudaMemcpyAsync(to, from, (size_t)bytes, kind, t->stream));
    GC_CUDA_TRY(t->resources.err, cudaStreamSynchronize(t->stream));
}

float *gc_cuda_timer_samples(gc_cuda_timer *t, const gc_timing *timing, int inputs, int copies, int64_t stride,
                             int64_t front) {
    float *samples = gc_cuda_timer_memory(t, (int64_t)copies * inputs * stride * 4, 0);
    for (int i = 0; i < copies * inputs && !t->resources.err; i++)
        gc_cuda_timer_copy(t, samples + i * stride + front, timing->in[i % inputs], timing->frames * 4,
                           cudaMemcpyHostToDevice);
    return t->resources.err ? NULL : samples;
}

void gc_cuda_timer_run(gc_cuda_timer *t, cudaError_t (*launch)(void *context, cudaStream_t stream), void *context,
                       int runs, double *seconds) {
    cudaError_t *err = &t->resources.err;
    double start = gc_now(), elapsed;
    int launches = 0;
    do { /* until the device runs at its full clock rate */
        GC_CUDA_TRY(*err, launch(context, t->stream));
        GC_CUDA_TRY(*err, cudaStreamSynchronize(t->stream));
        elapsed = gc_now() - start;
        launches++;
    } while (!*err && elapsed < 0.05);
    int row = (int)fmin(ROW_MAX, ceil(1e-3 * launches / elapsed));
    for (int run = 0; run < runs && !*err; run++) {
        float ms = 0;
        GC_CUDA_TRY(*err, cudaEventRecord(t->begin, t->stream));
        for (int k = 0; k < row; k++)
            GC_CUDA_TRY(*err, launch(context, t->stream));
        GC_CUDA_TRY(*err, cudaEventRecord(t->end, t->stream));
        GC_CUDA_TRY(*err, cudaEventSynchronize(t->end));
        GC_CUDA_TRY(*err, cudaEventElapsedTime(&ms, t->begin, t->end));
        seconds[run] = 1e-3 * (double)ms / row;
    }
}

gpuconv_status gc_cuda_timer_end(gc_cuda_timer *t, gpuconv_error *error) {
    gc_cuda_resources_free(&t->resources);
    gc_cuda_leave(t->caller);
    if (!t->resources.err)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "the benchmark failed on the GPU: %s",
                   cudaGetErrorString(t->resources.err));
}

/* ---- Peak rates -------------------------------------------------------------------------------------------------- */

typedef struct load {
    float *a, *b;
    int64_t floats, stride; /* of a copy of the samples */
    int blocks, copies, next;
    bool early;
} load;

static cudaError_t launch_fma(void *context, cudaStream_t stream) {
    load *l = context;
    return gck_peak_fma(l->a, l->blocks, 2048, stream);
}

static cudaError_t launch_copy(void *context, cudaStream_t stream) {
    load *l = context;
    const int64_t at = l->stride * (l->next++ % l->copies);
    return (l->early ? gck_peak_copy_early : gck_peak_copy)(l->a + at, l->b + at, l->floats, stream);
}

static cudaError_t launch_empty(void *context, cudaStream_t stream) {
    (void)context;
    return gck_peak_empty(stream);
}

/* Measures the bus with pinned memory: to the device, from the device, and both at once. */
static void measure_bus(gc_cuda_timer *t, void *device_in, void *device_out, int64_t bytes, gc_peak_rates *rates) {
    gc_cuda_resources *r = &t->resources;
    void *host_in = gc_cuda_pinned(r, bytes), *host_out = gc_cuda_pinned(r, bytes);
    cudaStream_t copy_out = gc_cuda_stream(r);
    double *const best[] = {&rates->to_device, &rates->from_device, &rates->both_at_once};
    const size_t n = (size_t)bytes;
    for (int k = 0; k < RUNS; k++) {
        for (int direction = 0; direction < 3 && !r->err; direction++) {
            double begin = gc_now();
            if (direction != 1)
                GC_CUDA_TRY(r->err, cudaMemcpyAsync(device_in, host_in, n, cudaMemcpyHostToDevice, t->stream));
            if (direction != 0)
                GC_CUDA_TRY(r->err, cudaMemcpyAsync(host_out, device_out, n, cudaMemcpyDeviceToHost, copy_out));
            GC_CUDA_TRY(r->err, cudaDeviceSynchronize());
            *best[direction] = fmax(*best[direction], (double)bytes / (gc_now() - begin));
        }
    }
}

gpuconv_status gc_cuda_peak_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error) {
    const int64_t floats = INT64_C(1) << 27, block_operations = 256 * 2048 * 64 * 2;
    gc_device device;
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (status)
        return status;
    gc_cuda_timer t;
    double seconds[RUNS];
    gc_cuda_timer_init(&t, device.number);
    *rates = (gc_peak_rates){0};
    load l = {.floats = floats, .copies = 1, .blocks = device.multiprocessors * 32};
    l.a = gc_cuda_timer_memory(&t, 4 * floats, 0);
    l.b = gc_cuda_timer_memory(&t, 4 * floats, 0);
    gc_cuda_timer_run(&t, launch_fma, &l, RUNS, seconds);
    rates->arithmetic = (double)block_operations * l.blocks / gc_median(seconds, RUNS, NULL);
    gc_cuda_timer_run(&t, launch_copy, &l, RUNS, seconds);
    rates->copy = 8.0 * (double)floats / gc_median(seconds, RUNS, NULL);
    gc_cuda_timer_run(&t, launch_empty, &l, RUNS, seconds);
    rates->launch = gc_median(seconds, RUNS, NULL);
    measure_bus(&t, l.a, l.b, INT64_C(1) << 28, rates);
    return gc_cuda_timer_end(&t, error);
}

gpuconv_status gc_cuda_copy(const gpuconv_config *config, int64_t bytes, int runs, bool early, double *seconds,
                            gpuconv_error *error) {
    gc_device device;
    gck_device properties = {0};
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (!status)
        status = gc_cuda_check(error, device.number, gck_device_query(device.number, &properties));
    if (!status && early && !properties.early_launch)
        status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s does not launch kernels early", device.name);
    if (status)
        return status;
    gc_cuda_timer t;
    gc_cuda_timer_init(&t, device.number);
    load l = {.floats = bytes / 4,
              .stride = gc_round_up(bytes / 4, 64),
              .copies = bytes > beyond_caches ? 1 : COPIES,
              .early = early};
    l.a = gc_cuda_timer_memory(&t, l.copies * l.stride * 4, 0);
    l.b = gc_cuda_timer_memory(&t, l.copies * l.stride * 4, 0);
    gc_cuda_timer_run(&t, launch_copy, &l, runs, seconds);
    return gc_cuda_timer_end(&t, error);
}

/* ---- Convolutions ------------------------------------------------------------------------------------------------ */

typedef struct convolution {
    gc_cuda_convolver convolver;
    const float *in;
    float *out;
    int64_t frames, in_floats, out_floats; /* floats of one copy of the samples */
    int copies, next;
} convolution;

static cudaError_t launch_convolution(void *context, cudaStream_t stream) {
    convolution *c = context;
    int64_t copy = c->next++ % c->copies;
    return gc_cuda_convolver_run(&c->convolver, c->in + copy * c->in_floats, c->out + copy * c->out_floats, c->frames,
                                 stream);
}

/* Downloads the outputs of the first copy of the samples and checks that all other copies have the same ones: every
 * launch computed all of its output. */
static void download(gc_cuda_timer *t, const convolution *c, int64_t length, int outputs, float *const *out) {
    float *other = c->copies > 1 ? gc_calloc(c->frames, sizeof *other) : NULL;
    if (c->copies > 1 && !other)
        GC_CUDA_TRY(t->resources.err, cudaErrorMemoryAllocation);
    for (int o = 0; o < outputs; o++) {
        gc_cuda_timer_copy(t, out[o], c->out + o * length, c->frames * 4, cudaMemcpyDeviceToHost);
        for (int k = 1; k < c->copies && !t->resources.err; k++) {
            gc_cuda_timer_copy(t, other, c->out + k * c->out_floats + o * length, c->frames * 4,
                               cudaMemcpyDeviceToHost);
            if (!t->resources.err && memcmp(other, out[o], (size_t)c->frames * sizeof *other) != 0)
                memset(out[o], 0xff, (size_t)c->frames * sizeof *other); /* NaN: the caller's check fails */
        }
    }
    free(other);
}

gpuconv_status gc_cuda_time_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t frames = timing->frames;
    const gc_schedule *s = &plan->choice.schedule;
    const int64_t length = gc_round_up(frames, gc_cuda_step(gc_cuda_algorithm_of(&plan->choice), s));
    int64_t history = gc_round_up(gc_schedule_history(s) + 32, 32), stride = history + length;
    gpuconv_plan one_chunk = {.ir = plan->ir, .device = plan->device, .choice = plan->choice};
    one_chunk.choice.chunk = length;
    convolution c = {.frames = frames, .in_floats = ir->inputs * stride, .out_floats = ir->outputs * length};
    c.copies = 4 * c.in_floats > beyond_caches ? 1 : COPIES;
    gc_cuda_timer t;
    gc_cuda_timer_init(&t, plan->device.number);
    float *samples = gc_cuda_timer_samples(&t, timing, ir->inputs, c.copies, stride, history);
    c.out = gc_cuda_timer_memory(&t, c.copies * c.out_floats * 4, 0xff); /* NaN */
    if (!t.resources.err) {
        c.in = samples + history;
        gc_cuda_convolver_init(&c.convolver, &one_chunk, stride, length, &t.resources, t.stream);
        gc_cuda_timer_run(&t, launch_convolution, &c, timing->runs, timing->seconds);
        download(&t, &c, length, ir->outputs, timing->out);
    }
    gpuconv_status status = gc_cuda_timer_end(&t, error);
    gc_cuda_convolver_free(&c.convolver);
    return status;
}

/* ---- Rows (gpuconv_arrays.h), without the bus -------------------------------------------------------------------- */

typedef struct rows_run {
    const gc_rows_timing *timing;
    gpuconv_arrays *arrays;
    gpuconv_arrays_plan *plan[GPUCONV_SEQUENCE_CLASSES_MAX]; /* of each job of a run */
    gpuconv_arrays_job whole[COPIES];
    gpuconv_sequences sequences; /* with offsets on the device */
    int64_t *table;
    void *workspace;
    size_t bytes;
    int copies, next;
    gpuconv_error error; /* of a run */
} rows_run;

static cudaError_t launch_rows(void *context, cudaStream_t stream) {
    rows_run *r = context;
    const int copy = r->next++ % r->copies;
    gpuconv_status status =
        r->table ? gpuconv_sequences_sort(r->arrays, &r->sequences, r->table, stream, &r->error) : GPUCONV_OK;
    for (int k = 0; k < gc_timed_jobs(r->timing) && !status; k++) {
        const gpuconv_arrays_job job = gc_timed_job(r->timing, &r->whole[copy], r->table, k);
        status = gpuconv_arrays_plan_run(r->plan[k], &job, r->workspace, r->bytes, stream, &r->error);
    }
    return status ? cudaErrorUnknown : cudaSuccess;
}

/* Allocates an array on the device with its samples, or NaN. Returns NULL after an error. */
static void *make_array(gc_cuda_timer *t, const gc_timed_array *array, int64_t sample) {
    char *at = gc_cuda_timer_memory(t, array->elements * sample, 0xff);
    for (int64_t i = 0; i < array->elements && array->samples && !t->resources.err; i += array->period)
        gc_cuda_timer_copy(t, at + i * sample, i ? at : array->samples,
                           gc_min(array->period, array->elements - i) * sample,
                           i ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice);
    return t->resources.err ? NULL : at;
}

/* Allocates and fills the copies of the arrays: one where a run writes more than the cache keeps. */
static void make_copies(gc_cuda_timer *t, const gc_rows_timing *timing, rows_run *r, int64_t cache) {
    int64_t written = 0;
    for (int c = 0; c < COPIES; c++)
        r->whole[c] = timing->job;
    for (int i = 0; i < GC_JOB_ARRAYS; i++)
        if (!timing->array[i].samples)
            written += timing->array[i].elements * gc_job_sample_bytes(gc_timed_rows(&r->whole[0], i)->type);
    r->copies = written > 2 * cache ? 1 : COPIES;
    for (int c = 0; c < r->copies; c++)
        for (int i = 0; i < GC_JOB_ARRAYS && !t->resources.err; i++) {
            gpuconv_rows *rows = gc_timed_rows(&r->whole[c], i);
            if (!timing->array[i].elements)
                continue;
            rows->data = make_array(t, &timing->array[i], gc_job_sample_bytes(rows->type));
        }
}

/* Gives the jobs of a step of training their transforms, which a convolution leaves before both gradients. */
static gpuconv_status make_transforms(gc_cuda_timer *t, rows_run *r, gpuconv_error *error) {
    const int64_t bytes = (int64_t)gpuconv_arrays_plan_transforms(r->plan[0]);
    gpuconv_status status = GPUCONV_OK;
    for (int c = 0; c < r->copies && bytes; c++)
        r->whole[c].transforms = gc_cuda_timer_memory(t, bytes, 0xff);
    if (!bytes || r->whole[0].operation != GPUCONV_ARRAYS_GRADIENT_BOTH)
        return GPUCONV_OK;
    const gpuconv_rows *y = &r->whole[0].output;
    void *output = gc_cuda_timer_memory(t, y->rows * y->frames * gc_job_sample_bytes(y->type), 0xff), *workspace = NULL;
    for (int c = 0; c < r->copies && !status && !t->resources.err; c++) {
        gpuconv_arrays_job forward = r->whole[c];
        size_t needed = 0;
        forward.operation = GPUCONV_ARRAYS_CONVOLVE;
        forward.output.data = output;
        status = gpuconv_arrays_workspace(r->arrays, &forward, &needed, error);
        workspace = workspace || status || !needed ? workspace : gc_cuda_timer_memory(t, (int64_t)needed, 0xff);
        if (!status && !t->resources.err)
            status = gpuconv_arrays_run(r->arrays, &forward, workspace, needed, t->stream, error);
    }
    return status;
}

/* Makes the plans of the jobs of a run, their workspace, and the table of packed rows. */
static gpuconv_status make_plans(gc_cuda_timer *t, rows_run *r, gpuconv_error *error) {
    const gpuconv_sequences *s = r->timing->sequences;
    gpuconv_status status = GPUCONV_OK;
    if (s) {
        r->sequences = *s;
        r->sequences.offsets =
            gc_cuda_upload(&t->resources, s->offsets, (s->sequences + 1) * (int64_t)sizeof *s->offsets);
        r->table = gc_cuda_timer_memory(t, gc_timed_table(s) * (int64_t)sizeof *r->table, 0xff);
    }
    for (int k = 0; k < gc_timed_jobs(r->timing) && !status && !t->resources.err; k++) {
        const gpuconv_arrays_job job = gc_timed_job(r->timing, &r->whole[0], r->table, k);
        status = gpuconv_arrays_plan_new(r->arrays, &job, &r->plan[k], error);
        if (gpuconv_arrays_plan_workspace(r->plan[k]) > r->bytes)
            r->bytes = gpuconv_arrays_plan_workspace(r->plan[k]);
    }
    if (!status && r->bytes)
        r->workspace = gc_cuda_timer_memory(t, (int64_t)r->bytes, 0xff);
    return status;
}

gpuconv_status gc_cuda_time_rows(const gpuconv_config *config, const gc_rows_timing *timing, gpuconv_error *error) {
    gc_device device;
    gc_cuda_timer t;
    rows_run r = {.timing = timing};
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (!status)
        status = gpuconv_arrays_new_cuda(device.number, &r.arrays, error);
    if (status)
        return status;
    gc_cuda_timer_init(&t, device.number);
    make_copies(&t, timing, &r, device.cache);
    status = make_plans(&t, &r, error);
    if (!status && timing->in_step && !timing->sequences)
        status = make_transforms(&t, &r, error);
    if (!status)
        gc_cuda_timer_run(&t, launch_rows, &r, timing->runs, timing->seconds);
    for (int i = 0; i < timing->parts && !status; i++) {
        const gc_timed_part *p = &timing->part[i];
        const gpuconv_rows *rows = gc_timed_rows(&r.whole[i % r.copies], p->array);
        const int64_t sample = gc_job_sample_bytes(rows->type);
        gc_cuda_timer_copy(&t, p->to, (const char *)rows->data + p->first * sample, p->count * sample,
                           cudaMemcpyDeviceToHost);
    }
    const gpuconv_status ended = gc_cuda_timer_end(&t, status || r.error.status ? NULL : error);
    for (int k = 0; k < gc_timed_jobs(timing); k++)
        gpuconv_arrays_plan_free(r.plan[k]);
    gpuconv_arrays_free(r.arrays);
    if (!status && r.error.status && error)
        *error = r.error;
    return status ? status : r.error.status ? r.error.status : ended;
}
