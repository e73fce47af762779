/* Direct convolution on all cores: a job is a stretch of one output. */
#include "cpu_convolver.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

/* A job is long enough that the history read again at its start is little, and begins at a multiple of the span, so
 * that the samples are the same however many there are; a thread gets several, so that they even out. */
enum { LEAST = 2 * GC_DIRECT_SPAN, MOST = 8 * GC_DIRECT_SPAN, JOBS_A_THREAD = 4 };

struct gc_convolver {
    const gpuconv_ir *ir;
    const gc_simd *simd;
    float *const *in;
    float *const *out;
    int64_t frames, stretch, stretches;
};

static gc_convolver *new_direct(const gpuconv_plan *plan) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->simd = gc_simd_best();
    return c;
}

static void job(void *context, int64_t index, int worker) {
    (void)worker;
    gc_convolver *c = context;
    int output = (int)(index / c->stretches);
    int64_t at = index % c->stretches * c->stretch, n = gc_min(c->stretch, c->frames - at);
    float *y = c->out[output] + at;
    int routes = 0;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        if (route->output == output)
            c->simd->direct(c->in[route->input] + at, gc_ir_plane(c->ir, route->plane), c->ir->frames, y, n,
                            routes++ > 0);
    }
    if (!routes)
        memset(y, 0, (size_t)n * sizeof *y);
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->frames = frames;
    int64_t even = frames * c->ir->outputs / (gc_pool_threads(pool) * JOBS_A_THREAD);
    c->stretch = gc_round_up(gc_max(LEAST, gc_min(MOST, even)), LEAST);
    c->stretches = (frames + c->stretch - 1) / c->stretch;
    gc_pool_run(pool, job, c, c->stretches * c->ir->outputs);
}

static void reset(gc_convolver *c) {
    (void)c; /* nothing is remembered between chunks */
}

static void free_direct(gc_convolver *c) {
    free(c);
}

const gc_convolver_kind gc_cpu_direct = {new_direct, gc_schedule_history, run, reset, free_direct};
