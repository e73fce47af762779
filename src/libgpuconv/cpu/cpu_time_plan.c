/* Times a plan on the CPU with samples that already lie in memory. */
#include "cpu_algorithm.h"
#include "cpu_measure.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* A convolver with planar buffers for the whole signal, laid out as the stream of cpu_backend.c lays out a chunk. */
typedef struct workspace {
    const gc_cpu_algorithm *algorithm;
    gc_convolver *convolver;
    gc_pool *pool;
    float **in, **out; /* per channel, pointers into the samples */
    float *samples_in, *samples_out;
} workspace;

static void free_workspace(workspace *w) {
    if (w->convolver)
        w->algorithm->free(w->convolver);
    gc_pool_free(w->pool);
    free(w->in);
    free(w->out);
    free(w->samples_in);
    free(w->samples_out);
}

/* Allocates everything but the struct. Returns false if there is too little memory. */
static bool allocate(workspace *w, const gpuconv_plan *plan, int64_t frames) {
    const gpuconv_ir *ir = plan->ir;
    int64_t history = gc_round_up(gc_schedule_overlap(&plan->choice.schedule), 16),
            whole = gc_round_up(frames, plan->choice.chunk);
    whole = gc_round_up(whole, 16);
    w->pool = gc_pool_new(plan->device.threads);
    if (w->pool)
        w->convolver = w->algorithm->new (plan, w->pool);
    w->in = gc_calloc(ir->inputs, sizeof *w->in);
    w->out = gc_calloc(ir->outputs, sizeof *w->out);
    w->samples_in = gc_calloc(ir->inputs * (history + whole), sizeof(float));
    w->samples_out = gc_calloc(ir->outputs * whole, sizeof(float));
    if (!w->pool || !w->convolver || !w->in || !w->out || !w->samples_in || !w->samples_out)
        return false;
    for (int c = 0; c < ir->inputs; c++)
        w->in[c] = w->samples_in + c * (history + whole) + history;
    for (int c = 0; c < ir->outputs; c++)
        w->out[c] = w->samples_out + c * whole;
    /* NaN, so that samples that are not written show */
    memset(w->samples_out, 0xff, (size_t)(ir->outputs * whole) * sizeof(float));
    return true;
}

/* Convolves the signal chunk by chunk. Returns false if memory is short or the thread's cancel flag is set. */
static bool run_once(const workspace *w, const gpuconv_plan *plan, int64_t frames) {
    int inputs = plan->ir->inputs, outputs = plan->ir->outputs;
    float **at = gc_calloc(inputs + outputs, sizeof *at);
    if (!at)
        return false;
    w->algorithm->reset(w->convolver);
    for (int64_t first = 0; first < frames && !gc_cancelled(); first += plan->choice.chunk) {
        for (int c = 0; c < inputs; c++)
            at[c] = w->in[c] + first;
        for (int c = 0; c < outputs; c++)
            at[inputs + c] = w->out[c] + first;
        w->algorithm->run(w->convolver, w->pool, at, at + inputs, gc_min(plan->choice.chunk, frames - first));
    }
    free(at);
    return !gc_cancelled();
}

gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error) {
    const int64_t frames = timing->frames;
    workspace w = {.algorithm = gc_cpu_algorithm_of(&plan->choice)};
    bool ok = allocate(&w, plan, frames);
    for (int c = 0; ok && c < plan->ir->inputs; c++)
        memcpy(w.in[c], timing->in[c], (size_t)frames * sizeof(float));
    for (int run = -1; ok && run < timing->runs; run++) { /* run -1 warms up */
        double begin = gc_now();
        ok = run_once(&w, plan, frames);
        if (run >= 0)
            timing->seconds[run] = gc_now() - begin;
    }
    for (int c = 0; ok && c < plan->ir->outputs; c++)
        memcpy(timing->out[c], w.out[c], (size_t)frames * sizeof(float));
    free_workspace(&w);
    return ok ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}
