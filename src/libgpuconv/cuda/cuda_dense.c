/* Dense matrices on the device: what they cost, and their set-up. */
#include "cuda_dense.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

bool gc_cuda_dense_schedule(int64_t taps, int64_t points, bool whole, gc_schedule *s) {
    const bool made =
        gc_schedule_make(whole ? GPUCONV_ALGORITHM_OVERLAP_SAVE : GPUCONV_ALGORITHM_PARTITIONED, taps, points, s);
    s->algorithm = GPUCONV_ALGORITHM_MATRIX;
    /* With one partition of half a transform the whole response has the longer hop. */
    return made && s->hop % 32 == 0 && (whole || s->partitions > 1);
}

/* Counts the inputs and outputs of all components. */
static void count_channels(const gc_components *c, double *inputs, double *outputs) {
    *inputs = *outputs = 0;
    for (int i = 0; i < c->count; i++) {
        *inputs += c->component[i].inputs;
        *outputs += c->component[i].outputs;
    }
}

double gc_cuda_dense_bytes(const gc_components *c, const gc_schedule *s, int64_t blocks) {
    double inputs, outputs, numbers = (double)gck_dense_query(s->transform).twiddles;
    count_channels(c, &inputs, &outputs);
    for (int i = 0; i < c->count; i++)
        numbers +=
            (double)gck_dense_responses(s->transform, s->partitions, c->component[i].inputs, c->component[i].outputs);
    const double bins = (double)s->transform / 2, columns = (double)(blocks + s->partitions - 1);
    return 8 * (numbers + bins * (inputs * columns + outputs * (double)blocks));
}

/* Returns the seconds of the product of one component, bound by arithmetic or by memory, as measured on an H200: tiles
 * of 64 outputs x 24 blocks on tensor cores, of 16 outputs where there are no more. */
static double product_seconds(const gc_costs *costs, const gc_device *device, const gc_component *part,
                              const gc_schedule *s, double blocks) {
    const double bins = (double)s->transform / 2, inputs = (double)gc_round_up(part->inputs, GCK_DENSE_TILE_INPUTS);
    const int64_t rows = part->outputs <= 16 ? 16 : part->outputs <= 32 ? 32 : 64;
    const double outputs = (double)gc_round_up(part->outputs, rows), columns = ceil(blocks / 8) * 8;
    const double factor = device->tensor_cores ? (rows == 16 ? 1.2 : 0.75) : 1.4;
    const double bytes = 8 * bins * (inputs * (double)s->partitions * (outputs + blocks) + outputs * blocks);
    return fmax(factor * costs->seconds[GC_COST_CUDA_BIN] * bins * outputs * inputs * (double)s->partitions * columns,
                bytes * 0.3 * costs->seconds[GC_COST_CUDA_OUTPUT]);
}

double gc_cuda_dense_seconds(const gc_costs *costs, const gc_device *device, const gc_components *c,
                             const gc_schedule *s, int64_t blocks) {
    double inputs, outputs, seconds = 0;
    count_channels(c, &inputs, &outputs);
    for (int i = 0; i < c->count; i++)
        seconds += product_seconds(costs, device, &c->component[i], s, (double)blocks);
    const double point = (s->transform == GCK_DENSE_POINTS_MAX ? 2.65 : 2.4) * costs->seconds[GC_COST_CUDA_OUTPUT];
    const double transforms = inputs * (double)(blocks + s->partitions - 1) + outputs * (double)blocks;
    return seconds + transforms * (double)s->transform * point + (2.5 + c->count) * costs->seconds[GC_COST_CUDA_LAUNCH];
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

/* Tables in host memory that are uploaded. */
typedef struct tables {
    gc_components components;
    int *inputs, *outputs; /* channels, part after part */
    gck_dense_route *routes;
    float2 *twiddles;
} tables;

static void free_tables(tables *t) {
    gc_components_free(&t->components);
    free(t->inputs);
    free(t->outputs);
    free(t->routes);
    free(t->twiddles);
}

/* Lists the parts and their channels. */
static void list_parts(gc_cuda_dense *d, const gpuconv_ir *ir, tables *t) {
    const gc_components *c = &t->components;
    gck_dense *a = &d->dense;
    for (int i = 0; i < c->count; i++) {
        const gc_component *from = &c->component[i];
        d->parts[i] = (gck_dense_part){a->inputs, from->inputs, a->outputs, from->outputs, NULL};
        for (int k = 0; k < from->inputs; k++)
            t->inputs[a->inputs++] = from->input[k];
        for (int k = 0; k < from->outputs; k++)
            t->outputs[a->outputs++] = from->output[k];
    }
    const int first = a->outputs;
    for (int o = 0; o < ir->outputs; o++)
        if (c->output_owner[o] < 0)
            t->outputs[a->outputs++] = o;
    d->parts_count = c->count;
    if (a->outputs > first)
        d->parts[d->parts_count++] = (gck_dense_part){0, 0, first, a->outputs - first, NULL};
}

/* Fills the tables. Returns false without memory. */
static bool make_tables(gc_cuda_dense *d, const gpuconv_plan *plan, tables *t) {
    const gpuconv_ir *ir = plan->ir;
    const gc_components *c = &t->components;
    const int64_t points = plan->schedule.transform;
    bool made = gc_components_find(ir, &t->components);
    if (made) {
        d->parts = gc_calloc(c->count + 1, sizeof *d->parts);
        t->inputs = gc_calloc(ir->inputs, sizeof *t->inputs);
        t->outputs = gc_calloc(ir->outputs, sizeof *t->outputs);
        t->routes = gc_calloc(ir->routes, sizeof *t->routes);
        t->twiddles = gc_calloc(gck_dense_query(points).twiddles, sizeof *t->twiddles);
        made = d->parts && t->inputs && t->outputs && t->routes && t->twiddles;
    }
    if (!made)
        return false;
    list_parts(d, ir, t);
    for (int r = 0; r < ir->routes; r++) {
        const gc_route *from = &ir->route[r];
        t->routes[r] = (gck_dense_route){c->output_owner[from->output], c->input_at[from->input],
                                         c->output_at[from->output], from->plane};
    }
    gck_dense_twiddles(points, t->twiddles);
    return true;
}

/* Allocates the responses of all parts, zeroed. */
static void allocate_parts(gc_cuda_dense *d, gc_cuda_resources *r, cudaStream_t stream) {
    for (int i = 0; i < d->parts_count; i++) {
        gck_dense_part *p = &d->parts[i];
        const int64_t bytes =
            (int64_t)sizeof(float2) * gck_dense_responses(d->dense.points, d->dense.partitions, p->inputs, p->outputs);
        p->responses = gc_cuda_memory(r, bytes);
        GC_CUDA_TRY(r->err, cudaMemsetAsync(p->responses, 0, (size_t)bytes, stream));
    }
}

static void init_from_tables(gc_cuda_dense *d, const gpuconv_plan *plan, const tables *t,
                             const gck_responses *responses, gc_cuda_resources *r, cudaStream_t stream) {
    const gc_schedule *s = &plan->schedule;
    const int64_t each = sizeof(float2), bins = s->transform / 2, columns = plan->chunk / s->hop + s->partitions - 1;
    gck_dense *a = &d->dense;
    a->points = s->transform;
    a->hop = s->hop;
    a->partition_taps = s->partition;
    a->partitions = (int)s->partitions;
    a->blocks = (int)(plan->chunk / s->hop);
    a->input_channel = gc_cuda_upload(r, t->inputs, a->inputs * (int64_t)sizeof *t->inputs);
    a->output_channel = gc_cuda_upload(r, t->outputs, a->outputs * (int64_t)sizeof *t->outputs);
    a->twiddles = gc_cuda_upload(r, t->twiddles, gck_dense_query(s->transform).twiddles * each);
    a->spectra = gc_cuda_memory(r, a->inputs * columns * bins * each);
    a->sums = gc_cuda_memory(r, a->outputs * (int64_t)a->blocks * bins * each);
    a->peaks = gc_cuda_memory(r, columns * (int64_t)sizeof *a->peaks);
    a->response_peaks = gc_cuda_memory(r, a->outputs * (int64_t)sizeof *a->response_peaks);
    GC_CUDA_TRY(r->err, gck_dense_uses_tensor_cores(&a->tensor_cores));
    allocate_parts(d, r, stream);
    const gck_dense_part *parts = gc_cuda_upload(r, d->parts, d->parts_count * (int64_t)sizeof *d->parts);
    const gck_dense_route *routes = gc_cuda_upload(r, t->routes, plan->ir->routes * (int64_t)sizeof *t->routes);
    GC_CUDA_TRY(r->err, gck_dense_transform_responses(a, parts, routes, plan->ir->routes, responses, stream));
}

void gc_cuda_dense_init(gc_cuda_dense *d, const gpuconv_plan *plan, const gck_responses *responses,
                        gc_cuda_resources *r, cudaStream_t stream) {
    tables t = {0};
    *d = (gc_cuda_dense){0};
    if (r->err)
        return;
    if (make_tables(d, plan, &t))
        init_from_tables(d, plan, &t, responses, r, stream);
    else
        r->err = cudaErrorMemoryAllocation;
    free_tables(&t);
}

void gc_cuda_dense_free(gc_cuda_dense *d) {
    free(d->parts);
    *d = (gc_cuda_dense){0};
}
