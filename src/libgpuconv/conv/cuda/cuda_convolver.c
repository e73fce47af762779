/* The convolution of planar chunks on the device. */
#include "cuda_algorithm.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>

static void upload_matrix(gc_cuda_convolver *c, const gpuconv_ir *ir, gc_cuda_resources *r) {
    gck_route *route = gc_cuda_host_table(r, ir->routes, sizeof *route);
    int *row = gc_cuda_host_table(r, ir->outputs + 1, sizeof *row);
    c->host_routes = route;
    c->matrix.host_route = route;
    if (!r->err) {
        c->matrix.single = gc_ir_one_route_each(ir);
        for (int i = 0; i < ir->routes; i++) {
            route[i] = (gck_route){ir->route[i].input, ir->route[i].plane};
            row[ir->route[i].output + 1]++;
        }
        for (int o = 0; o < ir->outputs; o++)
            row[o + 1] += row[o];
        for (int o = 0; o < ir->outputs && c->matrix.single && ir->outputs <= GCK_INLINE_ROUTES; o++)
            c->matrix.inline_route[o] = route[o];
        c->matrix.route = gc_cuda_upload(r, route, ir->routes * (int64_t)sizeof *route);
        c->matrix.row = gc_cuda_upload(r, row, (ir->outputs + 1) * (int64_t)sizeof *row);
    }
    free(row);
}

cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *c, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    *c = (gc_cuda_convolver){.algorithm = gc_cuda_algorithm_of(&plan->choice), .schedule = plan->choice.schedule};
    c->matrix.in_stride = in_stride;
    c->matrix.out_stride = out_stride;
    c->matrix.inputs = ir->inputs;
    c->matrix.outputs = ir->outputs;
    upload_matrix(c, ir, r);
    gck_responses responses = {.planes = ir->planes, .taps_count = ir->frames};
    responses.taps = gc_cuda_upload(r, ir->taps, ir->planes * ir->frames * (int64_t)sizeof *ir->taps);
    c->algorithm->init(c, plan, &responses, r, stream);
    return r->err;
}

cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *c, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream) {
    gck_matrix m = c->matrix;
    m.in = in;
    m.out = out;
    return c->algorithm->run(c, &m, frames, stream);
}

void gc_cuda_convolver_free(gc_cuda_convolver *c) {
    free(c->host_routes);
    free(c->parts);
    *c = (gc_cuda_convolver){0};
}
