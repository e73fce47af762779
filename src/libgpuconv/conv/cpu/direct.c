/* Direct convolution on all cores. A job computes one stretch of frames of one output. */
#include "cpu_algorithm.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <string.h>

/* A stretch is long enough that reading its history costs little, and begins at a multiple of the span, so that the
 * samples do not depend on the number of stretches. Several jobs per thread balance the load. */
enum { MIN_STRETCH = 2 * GC_DIRECT_SPAN, MAX_STRETCH = 8 * GC_DIRECT_SPAN, JOBS_PER_THREAD = 4 };

enum { MAX_FLOAT_PRODUCTS = 4096 }; /* that are summed in floats without loss of precision */

typedef struct call {
    const gpuconv_ir *ir;
    const gc_simd *simd;
    float *const *in;
    float *const *out;
    int64_t frames, stretch, stretches;
} call;

/* Computes one route of a stretch, or adds it to `y`. Works in pieces of whole spans, which give the same bits as one
 * call, so that cancelling is quick: a piece with a response of one minute takes 0.2 s. */
static void add_route(const call *c, const float *x, const float *taps, float *y, int64_t n, bool add) {
    const int64_t work = INT64_C(1) << 26, spans = gc_max(1, work / (GC_DIRECT_SPAN * c->ir->frames));
    const int64_t piece = gc_min(n, spans * GC_DIRECT_SPAN);
    for (int64_t at = 0; at < n && !gc_cancelled(); at += piece)
        c->simd->direct(x + at, taps, c->ir->frames, y + at, gc_min(piece, n - at), add);
}

/* Convolves one stretch with many routes into one output. A float sum of tens of thousands of products would lose
 * precision, so that each route is summed for itself first. */
static void sum_routes(const call *c, const gc_route *first, const gc_route *end, int64_t at, int64_t n, float *y) {
    float sum[GC_DIRECT_SPAN] __attribute__((aligned(64)));
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n && !gc_cancelled(); i += GC_DIRECT_SPAN) {
        const int64_t count = gc_min(GC_DIRECT_SPAN, n - i);
        for (const gc_route *route = first; route < end; route++) {
            c->simd->direct(c->in[route->input] + at + i, gc_ir_plane(c->ir, route->plane), c->ir->frames, sum, count,
                            0);
            for (int64_t k = 0; k < count; k++)
                y[i + k] += sum[k];
        }
    }
}

static void compute_stretch(void *context, int64_t index, int worker) {
    (void)worker;
    const call *c = context;
    const int output = (int)(index / c->stretches);
    const int64_t at = index % c->stretches * c->stretch, n = gc_min(c->stretch, c->frames - at);
    const gc_route *first = c->ir->route, *last = first + c->ir->routes; /* sorted by output */
    while (first < last && first->output < output)
        first++;
    const gc_route *end = first;
    while (end < last && end->output == output)
        end++;
    float *y = c->out[output] + at;
    if (end - first > 2 && (end - first) * c->ir->frames > MAX_FLOAT_PRODUCTS)
        sum_routes(c, first, end, at, n, y);
    else
        for (const gc_route *route = first; route < end; route++)
            add_route(c, c->in[route->input] + at, gc_ir_plane(c->ir, route->plane), y, n, route > first);
    if (first == end)
        memset(y, 0, (size_t)n * sizeof *y);
}

static void run(const gpuconv_ir *ir, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    call c = {.ir = ir, .simd = gc_simd_best(), .in = in, .out = out, .frames = frames};
    const int64_t even = frames * ir->outputs / (gc_pool_threads(pool) * JOBS_PER_THREAD);
    c.stretch = gc_round_up(gc_max(MIN_STRETCH, gc_min(MAX_STRETCH, even)), MIN_STRETCH);
    c.stretches = gc_divide_up(frames, c.stretch);
    gc_pool_run(pool, compute_stretch, &c, c.stretches * ir->outputs);
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

/* A chunk is as long as its history, up to a million frames. */
static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    (void)p;
    (void)threads;
    return gc_min(s->taps, INT64_C(1) << 20);
}

static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    (void)chunk;
    return total * (double)s->taps * p->stream.ir->routes * c->seconds[GC_COST_CPU_TAP] +
           gc_cpu_copy_seconds(p, c, total);
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    (void)chunk;
    (void)threads;
    return p->stream.ir->inputs * (double)gc_schedule_history(s);
}

const gc_cpu_algorithm gc_cpu_direct = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_DIRECT, "direct", 0, 0, GC_CPU_THRIFT, GC_CPU_EXCESS),
    .schedule = gc_schedule_direct,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .section = GC_SECTION_DIRECT,
    .direct = run,
};
