/* Direct convolution on the device: cost and set-up. */
#include "cuda_algorithm.h"

#include <math.h>

static bool fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    return form == 0 && gc_schedule_direct(p->stream.ir->frames, points, &c->schedule);
}

static int64_t step(const gc_schedule *s) {
    (void)s;
    return 512;
}

/* Returns the cost of the taps of a response, in taps of the kernel for long responses, measured on an H200. */
static double tap_cost(const gpuconv_ir *ir) {
    const double taps = (double)ir->frames;
    return ir->frames <= GCK_DIRECT_SHORT_TAPS_MAX ? 0.75 * taps : taps;
}

/* With few taps the limit is memory: a sample in, a sample out. */
static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *c,
                      double total) {
    (void)d;
    (void)c;
    const double *t = costs->seconds, outputs = total * p->stream.ir->outputs * t[GC_COST_CUDA_OUTPUT];
    const double taps = total * p->stream.ir->routes * tap_cost(p->stream.ir) * t[GC_COST_CUDA_TAP];
    return fmax(outputs + taps, 2 * outputs) + t[GC_COST_CUDA_LAUNCH];
}

static void init(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    (void)r;
    (void)stream;
    c->direct = (gck_direct_taps){.taps = responses->taps, .host_taps = plan->ir->taps, .taps_count = plan->ir->frames};
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_routes *m, int64_t frames, cudaStream_t stream) {
    return gck_direct(m, &c->direct, frames, stream);
}

const gc_cuda_algorithm gc_cuda_direct = {
    .row = GC_CUDA_ROW(GPUCONV_ALGORITHM_DIRECT, "direct", 0, 0, NULL),
    .schedule = gc_schedule_direct,
    .step = step,
    .rounding = INT64_C(32) * 1024,
    .seconds = seconds,
    .init = init,
    .run = run,
};
