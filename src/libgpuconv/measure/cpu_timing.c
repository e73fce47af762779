/* Times plans, and convolutions of rows (gpuconv_arrays.h), on the CPU with samples that are in memory. */
#include "measure.h"

#include "libgpuconv/conv/cpu/section.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

/* Floats of a page of memory, and between channels beyond whole pages: a processor lets a load wait for an earlier
 * store whose address differs from its own in whole pages. */
enum { PAGE = 1024, APART = 272 };

/* A convolver with planar buffers for the whole signal, laid out as the stream of cpu_backend.c lays out a chunk. */
typedef struct plan_run {
    const gpuconv_plan *plan;
    gc_convolver *convolver;
    gc_pool *pool;
    float *samples;          /* of the inputs, then of the outputs */
    int64_t history, stride; /* frames before the signal; floats of a channel */
    float **chunk;           /* per channel: where the current chunk begins */
} plan_run;

static float *signal_of(const plan_run *w, int channel) {
    return w->samples + channel * w->stride + w->history;
}

/* Allocates everything and copies the inputs. Outputs are filled with NaN, so that samples that are not written show.
 * Returns false if there is too little memory or the thread's cancel flag is set. */
static bool prepare(plan_run *w, const gc_timing *timing) {
    const gpuconv_plan *plan = w->plan;
    const int inputs = plan->ir->inputs, channels = inputs + plan->ir->outputs;
    w->history = gc_round_up(gc_schedule_overlap(&plan->choice.schedule), 16);
    w->stride = w->history + gc_round_up(gc_round_up(timing->frames, plan->choice.chunk), PAGE) + APART;
    w->pool = gc_pool_new(plan->device.threads);
    w->convolver = w->pool ? gc_section_new_whole(plan, w->pool) : NULL;
    w->samples = gc_calloc(channels, w->stride * (int64_t)sizeof *w->samples);
    w->chunk = gc_calloc(channels, sizeof *w->chunk);
    if (!w->convolver || !w->samples || !w->chunk)
        return false;
    bool ok = true;
    for (int c = 0; c < inputs && ok; c++)
        ok = gc_copy_memory(signal_of(w, c), timing->in[c], timing->frames * (int64_t)sizeof(float));
    for (int c = inputs; c < channels && ok; c++)
        ok = gc_set_memory(signal_of(w, c), 0xff, (w->stride - w->history) * (int64_t)sizeof(float));
    return ok;
}

/* Convolves the signal chunk by chunk. Returns false if the thread's cancel flag is set. */
static bool run_once(const plan_run *w, int64_t frames) {
    const int inputs = w->plan->ir->inputs, channels = inputs + w->plan->ir->outputs;
    const int64_t chunk = w->plan->choice.chunk;
    gc_section_reset(w->convolver);
    for (int64_t first = 0; first < frames && !gc_cancelled(); first += chunk) {
        for (int c = 0; c < channels; c++)
            w->chunk[c] = signal_of(w, c) + first;
        gc_section_run(w->convolver, w->pool, w->chunk, w->chunk + inputs, gc_min(chunk, frames - first));
    }
    return !gc_cancelled();
}

gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error) {
    plan_run w = {.plan = plan};
    bool ok = prepare(&w, timing);
    for (int run = -1; ok && run < timing->runs; run++) { /* run -1 warms up */
        double begin = gc_now();
        ok = run_once(&w, timing->frames);
        if (run >= 0)
            timing->seconds[run] = gc_now() - begin;
    }
    for (int c = 0; ok && c < plan->ir->outputs; c++)
        ok = gc_copy_memory(timing->out[c], signal_of(&w, plan->ir->inputs + c),
                            timing->frames * (int64_t)sizeof(float));
    gc_section_free(w.convolver);
    gc_pool_free(w.pool);
    free(w.chunk);
    free(w.samples);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Returns an array with its samples, or NaN, to be freed; NULL without memory. */
static char *make_array(const gc_timed_array *array, int64_t sample) {
    char *at = gc_calloc(array->elements, sample);
    for (int64_t i = 0; i < array->elements && at; i += array->period) {
        const size_t bytes = (size_t)(gc_min(array->period, array->elements - i) * sample);
        if (array->samples)
            memcpy(at + i * sample, array->samples, bytes);
        else
            memset(at + i * sample, 0xff, bytes);
    }
    return at;
}

/* Does all jobs of a run. */
static gpuconv_status run_jobs(gpuconv_arrays *arrays, const gpuconv_arrays_job *whole, const gc_rows_timing *t,
                               int64_t *table, gpuconv_error *error) {
    gpuconv_status status =
        t->sequences ? gpuconv_sequences_sort(arrays, t->sequences, table, NULL, error) : GPUCONV_OK;
    for (int k = 0; k < gc_timed_jobs(t) && !status; k++) {
        const gpuconv_arrays_job job = gc_timed_job(t, whole, table, k);
        status = gpuconv_arrays_run(arrays, &job, NULL, 0, NULL, error);
    }
    return status;
}

/* Measures the runs after a warm-up. */
static gpuconv_status time_runs(gpuconv_arrays *arrays, const gpuconv_arrays_job *whole, const gc_rows_timing *t,
                                gpuconv_error *error) {
    const int64_t numbers = gc_timed_table(t->sequences);
    int64_t *table = numbers ? gc_calloc(numbers, sizeof *table) : NULL;
    gpuconv_status status = !numbers || table ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
    for (int run = -1; run < t->runs && !status; run++) {
        const double begin = gc_now();
        status = run_jobs(arrays, whole, t, table, error);
        if (run >= 0)
            t->seconds[run] = gc_now() - begin;
        if (!status && gc_cancelled())
            status = gc_fail_cancelled(error, "the benchmark");
    }
    free(table);
    return status;
}

gpuconv_status gc_cpu_time_rows(const gpuconv_config *config, const gc_rows_timing *t, gpuconv_error *error) {
    gpuconv_arrays_job job = t->job;
    gpuconv_arrays *arrays = NULL;
    gpuconv_status status = gpuconv_arrays_new_cpu(config->threads, &arrays, error);
    for (int i = 0; i < GC_JOB_ARRAYS; i++) {
        gpuconv_rows *rows = gc_timed_rows(&job, i);
        rows->data = status || !t->array[i].elements ? NULL : make_array(&t->array[i], gc_job_sample_bytes(rows->type));
        if (!status && t->array[i].elements && !rows->data)
            status = gc_fail_memory(error, "the benchmark");
    }
    if (!status)
        status = time_runs(arrays, &job, t, error);
    for (int i = 0; i < t->parts && !status; i++) {
        const gc_timed_part *p = &t->part[i];
        const gpuconv_rows *rows = gc_timed_rows(&job, p->array);
        const int64_t sample = gc_job_sample_bytes(rows->type);
        memcpy(p->to, (const char *)rows->data + p->first * sample, (size_t)(p->count * sample));
    }
    for (int i = 0; i < GC_JOB_ARRAYS; i++)
        free(gc_timed_rows(&job, i)->data);
    gpuconv_arrays_free(arrays);
    return status;
}
