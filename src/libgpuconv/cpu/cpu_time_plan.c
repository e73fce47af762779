/* What the CPU can do at most, and convolutions timed on samples that lie in memory. */
#include "cpu_convolver.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 7 };

typedef struct load {
    const gc_simd *simd;
    char *from, *to;
    int64_t share;     /* bytes a thread */
    double operations; /* of one thread */
    float kept[64];
} load;

static void multiply_add(void *context, int64_t index, int worker) {
    load *l = context;
    double operations;
    l->kept[worker % 64] = l->simd->multiply_add_loop(1 << 20, &operations);
    if (index == 0)
        l->operations = operations;
}

static void copy(void *context, int64_t index, int worker) {
    (void)worker;
    load *l = context;
    memcpy(l->to + index * l->share, l->from + index * l->share, (size_t)l->share);
}

static void nothing(void *context, int64_t index, int worker) {
    (void)context;
    (void)index;
    (void)worker;
}

/* The quickest of a few: a ceiling is what was reached once. */
static double quickest(gc_pool *pool, void (*job)(void *, int64_t, int), load *l, int jobs) {
    double best = HUGE_VAL;
    for (int r = 0; r < RUNS; r++) {
        double begin = gc_now();
        gc_pool_run(pool, job, l, jobs);
        best = fmin(best, gc_now() - begin);
    }
    return best;
}

gpuconv_status gc_cpu_peak_rates(const gpuconv_config *config, gc_peak_rates *c, gpuconv_error *error) {
    const int64_t bytes = INT64_C(1) << 28;
    int threads = config->threads ? config->threads : gc_processor_count();
    load l = {.simd = gc_simd_best(), .share = bytes / threads / 64 * 64};
    l.from = gc_calloc(bytes, 1);
    l.to = gc_calloc(bytes, 1);
    gc_pool *pool = gc_pool_new(threads);
    bool made = l.from && l.to && pool;
    if (made) {
        memset(l.from, 1, (size_t)bytes); /* pages of their own */
        memset(l.to, 2, (size_t)bytes);
        double t = quickest(pool, multiply_add, &l, threads);
        *c = (gc_peak_rates){.arithmetic = l.operations * threads / t};
        c->copy = 2.0 * (double)l.share * threads / quickest(pool, copy, &l, threads);
        c->launch = quickest(pool, nothing, &l, threads);
        made = !gc_cancelled();
    }
    gc_pool_free(pool);
    free(l.from);
    free(l.to);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

gpuconv_status gc_cpu_copy(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error) {
    int threads = config->threads ? config->threads : gc_processor_count();
    load l = {.share = gc_round_up(bytes, threads) / threads};
    l.from = gc_calloc(l.share, threads);
    l.to = gc_calloc(l.share, threads);
    gc_pool *pool = gc_pool_new(threads);
    bool made = l.from && l.to && pool;
    if (made)
        memset(l.from, 1, (size_t)(l.share * threads)); /* pages of their own */
    for (int run = -1; made && run < runs; run++) {     /* one to warm up */
        double begin = gc_now();
        gc_pool_run(pool, copy, &l, threads);
        made = !gc_cancelled();
        if (run >= 0)
            seconds[run] = gc_now() - begin;
    }
    gc_pool_free(pool);
    free(l.from);
    free(l.to);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}

typedef struct room {
    gc_convolver *convolver;
    gc_pool *pool;
    float **in, **out; /* a channel: as the driver of chunks would lay it out */
    float *samples_in, *samples_out;
} room;

static void free_room(const gc_convolver_kind *kind, room *r) {
    if (r->convolver)
        kind->free(r->convolver);
    gc_pool_free(r->pool);
    free(r->in);
    free(r->out);
    free(r->samples_in);
    free(r->samples_out);
}

static bool take_room(const gpuconv_plan *plan, const gc_convolver_kind *kind, int64_t frames, room *r) {
    const gpuconv_ir *ir = plan->ir;
    int64_t history = gc_round_up(kind->history(&plan->schedule), 16), whole = gc_round_up(frames, plan->chunk);
    whole = gc_round_up(whole, 16);
    r->pool = gc_pool_new(plan->device.threads);
    r->convolver = kind->new (plan);
    r->in = gc_calloc(ir->inputs, sizeof *r->in);
    r->out = gc_calloc(ir->outputs, sizeof *r->out);
    r->samples_in = gc_calloc(ir->inputs * (history + whole), sizeof(float));
    r->samples_out = gc_calloc(ir->outputs * whole, sizeof(float));
    if (!r->pool || !r->convolver || !r->in || !r->out || !r->samples_in || !r->samples_out)
        return false;
    for (int c = 0; c < ir->inputs; c++)
        r->in[c] = r->samples_in + c * (history + whole) + history;
    for (int c = 0; c < ir->outputs; c++)
        r->out[c] = r->samples_out + c * whole;
    memset(r->samples_out, 0xff, (size_t)(ir->outputs * whole) * sizeof(float)); /* NaN */
    return true;
}

static bool run_once(const gpuconv_plan *plan, const gc_convolver_kind *kind, const room *r, int64_t frames) {
    int inputs = plan->ir->inputs, outputs = plan->ir->outputs;
    float **at = gc_calloc(inputs + outputs, sizeof *at);
    if (!at)
        return false;
    kind->reset(r->convolver);
    for (int64_t first = 0; first < frames && !gc_cancelled(); first += plan->chunk) {
        for (int c = 0; c < inputs; c++)
            at[c] = r->in[c] + first;
        for (int c = 0; c < outputs; c++)
            at[inputs + c] = r->out[c] + first;
        kind->run(r->convolver, r->pool, at, at + inputs, gc_min(plan->chunk, frames - first));
    }
    free(at);
    return !gc_cancelled();
}

gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                                int runs, double *seconds, gpuconv_error *error) {
    const gc_convolver_kind *kind = gc_cpu_kind(plan->schedule.algorithm);
    room r = {0};
    bool made = take_room(plan, kind, frames, &r);
    for (int c = 0; made && c < plan->ir->inputs; c++)
        memcpy(r.in[c], in[c], (size_t)frames * sizeof(float));
    for (int run = -1; made && run < runs; run++) { /* one to warm up */
        double begin = gc_now();
        made = run_once(plan, kind, &r, frames);
        if (run >= 0)
            seconds[run] = gc_now() - begin;
    }
    for (int c = 0; made && c < plan->ir->outputs; c++)
        memcpy(out[c], r.out[c], (size_t)frames * sizeof(float));
    free_room(kind, &r);
    return made ? GPUCONV_OK : gc_fail_memory(error, "the benchmark");
}
