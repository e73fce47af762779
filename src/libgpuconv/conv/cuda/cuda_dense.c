/* Dense matrices of responses on the device (kernels/engine/stream/dense.h): cost and set-up. */
#include "cuda_algorithm.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

/* More components than this take a launch too many. */
enum { PARTS_MAX = 64 };

/* Blocks of a chunk, at least: a tile of the product. Each chunk reads all responses. */
enum { CHUNK_BLOCKS = 8 };

static bool has_parts(const gc_problem *p) {
    return p->stream.components.count >= 1 && p->stream.components.count <= PARTS_MAX;
}

/* Makes the schedule with the whole response in one partition (form 0), or with partitions of half a transform (1):
 * with one partition of half a transform the whole response has the longer hop. */
static bool fits(const gc_problem *p, const gc_device *d, int64_t points, int form, gc_choice *c) {
    gc_schedule *s = &c->schedule;
    const gck_dense_sizes size = gck_dense_query(points);
    return size.twiddles && size.shared_bytes <= d->shared_memory && has_parts(p) &&
           (form ? gc_schedule_partitioned : gc_schedule_overlap_save)(p->stream.ir->frames, points, s) &&
           s->hop % 32 == 0 && (form == 0 || s->partitions > 1);
}

static int64_t chunk(const gc_schedule *s) {
    return CHUNK_BLOCKS * s->hop;
}

static gpuconv_status refuse(const gc_algorithm *algorithm, const gc_problem *p, const gc_device *d,
                             gpuconv_error *error) {
    if (has_parts(p))
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "the response has %d parts that share no channel; %s on %s takes 1 to %d",
                   p->stream.components.count, algorithm->name, d->name, PARTS_MAX);
}

/* Counts the inputs and outputs of all components. */
static void count_channels(const gc_components *c, double *inputs, double *outputs) {
    *inputs = *outputs = 0;
    for (int i = 0; i < c->count; i++) {
        *inputs += c->component[i].inputs;
        *outputs += c->component[i].outputs;
    }
}

static double bytes(const gc_problem *p, const gc_device *d, const gc_choice *choice) {
    (void)d;
    const gc_components *c = &p->stream.components;
    const gc_schedule *s = &choice->schedule;
    const int64_t blocks = choice->chunk / s->hop;
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

static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *choice,
                      double total) {
    const gc_components *c = &p->stream.components;
    const gc_schedule *s = &choice->schedule;
    const int64_t hops = choice->chunk / s->hop;
    const double blocks = (double)hops, *t = costs->seconds;
    double inputs, outputs, products = 0;
    count_channels(c, &inputs, &outputs);
    for (int i = 0; i < c->count; i++)
        products += product_seconds(costs, d, &c->component[i], s, blocks);
    const double point = (s->transform == GCK_DENSE_POINTS_MAX ? 2.65 : 2.4) * t[GC_COST_CUDA_OUTPUT];
    const double transforms = inputs * (blocks + (double)s->partitions - 1) + outputs * blocks;
    return ceil(total / (double)choice->chunk) *
           (products + transforms * (double)s->transform * point + (2.5 + c->count) * t[GC_COST_CUDA_LAUNCH]);
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

/* Tables in host memory that are uploaded. */
typedef struct tables {
    gc_components components;
    int *inputs, *outputs; /* channels, part after part */
    gck_dense_route *routes;
} tables;

static void free_tables(tables *t) {
    gc_components_free(&t->components);
    free(t->inputs);
    free(t->outputs);
    free(t->routes);
}

/* Lists the parts and their channels. */
static void list_parts(gc_cuda_convolver *d, const gpuconv_ir *ir, tables *t) {
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

/* Fills the tables. Errors: r->err. */
static void make_tables(gc_cuda_convolver *d, const gpuconv_ir *ir, tables *t, gc_cuda_resources *r) {
    const gc_components *c = &t->components;
    if (!r->err && !gc_components_find(ir, &t->components))
        r->err = cudaErrorMemoryAllocation;
    d->parts = gc_cuda_host_table(r, c->count + 1, sizeof *d->parts);
    t->inputs = gc_cuda_host_table(r, ir->inputs, sizeof *t->inputs);
    t->outputs = gc_cuda_host_table(r, ir->outputs, sizeof *t->outputs);
    t->routes = gc_cuda_host_table(r, ir->routes, sizeof *t->routes);
    if (r->err)
        return;
    list_parts(d, ir, t);
    for (int k = 0; k < ir->routes; k++) {
        const gc_route *from = &ir->route[k];
        t->routes[k] = (gck_dense_route){c->output_owner[from->output], c->input_at[from->input],
                                         c->output_at[from->output], from->plane};
    }
}

/* Allocates the responses of all parts, zeroed. */
static void allocate_parts(gc_cuda_convolver *d, gc_cuda_resources *r, cudaStream_t stream) {
    for (int i = 0; i < d->parts_count; i++) {
        gck_dense_part *p = &d->parts[i];
        const int64_t size =
            (int64_t)sizeof(float2) * gck_dense_responses(d->dense.points, d->dense.partitions, p->inputs, p->outputs);
        p->responses = gc_cuda_memory(r, size);
        GC_CUDA_TRY(r->err, cudaMemsetAsync(p->responses, 0, (size_t)size, stream));
    }
}

static void init(gc_cuda_convolver *d, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    tables t = {0};
    make_tables(d, plan->ir, &t, r);
    const gc_schedule *s = &plan->choice.schedule;
    const int64_t each = sizeof(float2), bins = s->transform / 2,
                  columns = plan->choice.chunk / s->hop + s->partitions - 1;
    gck_dense *a = &d->dense;
    a->points = s->transform;
    a->hop = s->hop;
    a->partition_taps = s->partition;
    a->partitions = (int)s->partitions;
    a->blocks = (int)(plan->choice.chunk / s->hop);
    a->input_channel = gc_cuda_upload(r, t.inputs, a->inputs * (int64_t)sizeof *t.inputs);
    a->output_channel = gc_cuda_upload(r, t.outputs, a->outputs * (int64_t)sizeof *t.outputs);
    a->twiddles = gc_cuda_twiddles(r, gck_dense_twiddles, s->transform, gck_dense_query(s->transform).twiddles);
    a->spectra = gc_cuda_memory(r, a->inputs * columns * bins * each);
    a->sums = gc_cuda_memory(r, a->outputs * (int64_t)a->blocks * bins * each);
    a->peaks = gc_cuda_memory(r, columns * (int64_t)sizeof *a->peaks);
    a->response_peaks = gc_cuda_memory(r, a->outputs * (int64_t)sizeof *a->response_peaks);
    GC_CUDA_TRY(r->err, gck_dense_uses_tensor_cores(&a->tensor_cores));
    allocate_parts(d, r, stream);
    const gck_dense_part *parts = gc_cuda_upload(r, d->parts, d->parts_count * (int64_t)sizeof *d->parts);
    const gck_dense_route *routes = gc_cuda_upload(r, t.routes, plan->ir->routes * (int64_t)sizeof *t.routes);
    GC_CUDA_TRY(r->err, gck_dense_transform_responses(a, parts, routes, plan->ir->routes, responses, stream));
    free_tables(&t);
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_routes *m, int64_t frames, cudaStream_t stream) {
    const int64_t hop = c->schedule.hop;
    return gck_dense_convolve(m, &c->dense, c->parts, c->parts_count, (int)gc_divide_up(frames, hop), stream);
}

const gc_cuda_algorithm gc_cuda_dense = {
    .row = GC_CUDA_ROW(GPUCONV_ALGORITHM_MATRIX, "matrix", GCK_DENSE_POINTS_MIN, GCK_DENSE_POINTS_MAX, refuse),
    .schedule = gc_schedule_dense,
    .chunk = chunk,
    .seconds = seconds,
    .bytes = bytes,
    .init = init,
    .run = run,
};
