/* Direct convolution on the device: cost and set-up. */
#include "cuda_algorithm.h"

#include <math.h>
#include <stdlib.h>

static bool fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    return form == 0 && gc_schedule_direct(p->stream.ir->frames, points, &c->schedule);
}

static int64_t step(const gc_schedule *s) {
    (void)s;
    return 512;
}

/* Returns the cost of the taps of a response, in taps of the kernel for long responses, measured on an H200. */
static double tap_cost(const gc_device *device, const gpuconv_ir *ir) {
    const double taps = (double)ir->frames;
    if (device->tensor_cores && gck_direct_tensor_table_size(ir->frames) > 0 && gc_ir_one_route_each(ir))
        return ir->frames <= 129 ? 0.32 * (taps + 16) : 0.62 * taps;
    return ir->frames <= GCK_DIRECT_SHORT_TAPS_MAX ? 0.75 * taps : taps;
}

/* With few taps the limit is memory: a sample in, a sample out. */
static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *c,
                      double total) {
    (void)c;
    const double *t = costs->seconds, outputs = total * p->stream.ir->outputs * t[GC_COST_CUDA_OUTPUT];
    const double taps = total * p->stream.ir->routes * tap_cost(d, p->stream.ir) * t[GC_COST_CUDA_TAP];
    return fmax(outputs + taps, 2 * outputs) + t[GC_COST_CUDA_LAUNCH];
}

/* Uploads the taps' tables for tensor cores. Returns NULL if this length has none. */
static const uint2 *upload_tensor_tables(const gpuconv_ir *ir, gc_cuda_resources *r) {
    const int64_t size = gck_direct_tensor_table_size(ir->frames);
    if (size == 0)
        return NULL;
    uint2 *table = gc_cuda_host_table(r, ir->planes * size, sizeof *table);
    for (int p = 0; table && p < ir->planes; p++)
        gck_direct_tensor_table(gc_ir_plane(ir, p), ir->frames, table + p * size);
    const uint2 *device = gc_cuda_upload(r, table, ir->planes * size * (int64_t)sizeof *table);
    free(table);
    return device;
}

static void init(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    (void)stream;
    c->direct = (gck_direct_taps){.taps = responses->taps,
                                  .host_taps = plan->ir->taps,
                                  .table = plan->device.tensor_cores ? upload_tensor_tables(plan->ir, r) : NULL,
                                  .taps_count = plan->ir->frames};
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_matrix *m, int64_t frames, cudaStream_t stream) {
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
