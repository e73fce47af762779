/*
 * What the algorithms of streams share: their cost model, and the convolution of planar chunks.
 *
 * Each algorithm counts the operations of a schedule and multiplies them by their costs (conv/plan.h). Here are the
 * bus, chunks and memory. The samples of a file cross the bus in both directions while the device computes, so that the
 * slower of the two counts.
 */
#include "cuda_algorithm.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

/* Inputs of unknown length, and longer ones, are planned for this many frames, ten minutes at 48 kHz: a pipe and a file
 * with the same samples then give the same bytes. */
static const int64_t long_input = INT64_C(600) * 48000;

/* A chunk has at most chunk_samples samples, enough for the kernels to fill the device and for copies of megabytes, and
 * fewer if the signal is short, so that there are about CHUNKS chunks for the three streams to overlap. */
static const int64_t chunk_samples = INT64_C(3) << 20, chunk_samples_min = INT64_C(1) << 16;
enum { CHUNKS = 12 };

/* Copies and kernels of a chunk, which nothing overlaps where chunks are short. */
enum { CHUNK_LAUNCHES = 8 };

int64_t gc_cuda_step(const gc_cuda_algorithm *a, const gc_schedule *s) {
    return a->step ? a->step(s) : s->hop;
}

int64_t gc_cuda_chunk(const gc_cuda_algorithm *a, const gc_problem *p, const gc_schedule *s) {
    const int64_t channels = gc_max(p->stream.ir->inputs, p->stream.ir->outputs);
    const int64_t total = gc_problem_frames(p, long_input) + s->taps - 1;
    const int64_t step = a->rounding ? a->rounding : gc_cuda_step(a, s);
    int64_t target = gc_min(chunk_samples / channels, total / CHUNKS);
    target = gc_max(target, chunk_samples_min / channels);
    if (a->chunk)
        target = gc_max(target, a->chunk(s));
    /* Rounds to the nearest multiple: a chunk that is half a step shorter costs less than the wait for half a step
     * more. */
    const int64_t chunk = gc_max(step, gc_round_up(gc_min(target, total) - step / 2, step));
    if (!p->stream.chunk_most)
        return chunk;
    const int64_t shortest = gc_cuda_step(a, s);
    return gc_max(shortest, gc_min(chunk, p->stream.chunk_most) / shortest * shortest);
}

double gc_cuda_slowdown(int64_t points, bool three_kernels) {
    switch (points) {
    case 4096:
        return 1.37;
    case 8192:
        return 1.68;
    case 16384:
        return 1.82;
    case 32768:
        return three_kernels ? 1 : 2.7;
    case INT64_C(1) << 19:
    case INT64_C(1) << 20:
        return 1.1;
    case INT64_C(1) << 21:
        return 1.22;
    default:
        return 1;
    }
}

/* Returns the slots of a stream: one for each chunk, but at least as many as overlap reading, computing and writing if
 * the signal is longer than the caller said. */
static int slots_of(const gc_problem *p, int64_t chunk) {
    const int64_t least = 3, total = gc_problem_frames(p, long_input) + p->stream.ir->frames - 1;
    const int64_t chunks = p->stream.frames < 0 ? GC_CUDA_SLOTS : gc_divide_up(total, chunk);
    return (int)gc_min(gc_max(chunks, least), p->stream.chunk_most ? GC_BOUNDED_SLOTS : GC_CUDA_SLOTS);
}

double gc_cuda_bytes(const gc_problem *p, const gc_device *d, const gc_choice *c) {
    const gpuconv_ir *ir = p->stream.ir;
    const gc_cuda_algorithm *a = gc_cuda_algorithm_of(c);
    const double chunk = (double)c->chunk, inputs = ir->inputs, outputs = ir->outputs;
    return 4 * (2 * inputs * (chunk + (double)gc_schedule_history(&c->schedule)) + outputs * chunk) +
           4.0 * c->slots * (inputs + outputs) * chunk + 4 * (double)ir->planes * (double)ir->frames +
           (double)ir->routes * (double)(sizeof(gck_route) + sizeof(gck_dense_route)) +
           (a->bytes ? a->bytes(p, d, c) : 0);
}

/* Sets the chunk, and with it slots and bytes: halves it until the memory suffices or it has one step. */
static void fit_chunk(const gc_problem *p, const gc_device *d, gc_choice *c) {
    const gc_cuda_algorithm *a = gc_cuda_algorithm_of(c);
    const int64_t step = gc_cuda_step(a, &c->schedule);
    c->chunk = gc_cuda_chunk(a, p, &c->schedule);
    for (;; c->chunk = gc_round_up(c->chunk / 2, step)) {
        c->slots = slots_of(p, c->chunk);
        c->bytes = gc_cuda_bytes(p, d, c);
        if (c->chunk <= step || c->bytes <= GC_MEMORY_SHARE * d->memory)
            return;
    }
}

void gc_cuda_cost(const gc_problem *p, const gc_device *d, const gc_costs *costs, gc_choice *c) {
    const gc_cuda_algorithm *a = gc_cuda_algorithm_of(c);
    const double inputs = p->stream.ir->inputs, outputs = p->stream.ir->outputs, *t = costs->seconds;
    const double total = (double)gc_problem_frames(p, long_input) + (double)c->schedule.taps;
    fit_chunk(p, d, c);
    /* The copies of the first chunk in and of the last one out are not overlapped. They are taken to be the same for
     * every algorithm, so that the computation decides. */
    const double not_overlapped = 4 * (inputs + outputs) * fmin((double)chunk_samples, total) * t[GC_COST_BUS_BYTE];
    const double bus = total * 4 * fmax(inputs, outputs) * t[GC_COST_BUS_BYTE];
    const double compute = total * (inputs + outputs) * t[GC_COST_CUDA_SAMPLE] + a->seconds(p, d, costs, c, total);
    /* The slower one counts fully. The other one counts half: otherwise all schedules that compute faster than the bus
     * would have equal cost. */
    c->cost = fmax(compute, bus) + 0.5 * fmin(compute, bus) + not_overlapped;
    if (p->stream.chunk_most)
        c->cost += total / (double)c->chunk * CHUNK_LAUNCHES * t[GC_COST_CUDA_LAUNCH];
    if (p->stream.chunk_most && c->chunk > p->stream.chunk_most)
        c->cost = HUGE_VAL;
}

void gc_cuda_settle(const gc_problem *p, const gc_device *d, const gc_costs *costs, gc_choice *c) {
    (void)d;
    (void)costs;
    c->predicted = c->cost *= fmax(1, (double)p->stream.frames / (double)long_input);
}

/* ---- Convolution of planar chunks -------------------------------------------------------------------------------- */

static void upload_matrix(gc_cuda_convolver *c, const gpuconv_ir *ir, gc_cuda_resources *r) {
    gck_route *route = gc_cuda_host_table(r, ir->routes, sizeof *route);
    int *row = gc_cuda_host_table(r, ir->outputs + 1, sizeof *row);
    c->host_routes = route;
    c->routes.host_route = route;
    if (!r->err) {
        c->routes.single = gc_ir_one_route_each(ir);
        for (int i = 0; i < ir->routes; i++) {
            route[i] = (gck_route){ir->route[i].input, ir->route[i].plane};
            row[ir->route[i].output + 1]++;
        }
        for (int o = 0; o < ir->outputs; o++)
            row[o + 1] += row[o];
        for (int o = 0; o < ir->outputs && c->routes.single && ir->outputs <= GCK_INLINE_ROUTES; o++)
            c->routes.inline_route[o] = route[o];
        c->routes.route = gc_cuda_upload(r, route, ir->routes * (int64_t)sizeof *route);
        c->routes.row = gc_cuda_upload(r, row, (ir->outputs + 1) * (int64_t)sizeof *row);
    }
    free(row);
}

cudaError_t gc_cuda_convolver_init(gc_cuda_convolver *c, const gpuconv_plan *plan, int64_t in_stride,
                                   int64_t out_stride, gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    *c = (gc_cuda_convolver){.algorithm = gc_cuda_algorithm_of(&plan->choice), .schedule = plan->choice.schedule};
    c->routes.in_stride = in_stride;
    c->routes.out_stride = out_stride;
    c->routes.inputs = ir->inputs;
    c->routes.outputs = ir->outputs;
    upload_matrix(c, ir, r);
    gck_responses responses = {.planes = ir->planes, .taps_count = ir->frames};
    responses.taps = gc_cuda_upload(r, ir->taps, ir->planes * ir->frames * (int64_t)sizeof *ir->taps);
    c->algorithm->init(c, plan, &responses, r, stream);
    return r->err;
}

cudaError_t gc_cuda_convolver_run(const gc_cuda_convolver *c, const float *in, float *out, int64_t frames,
                                  cudaStream_t stream) {
    gck_routes m = c->routes;
    m.in = in;
    m.out = out;
    return c->algorithm->run(c, &m, frames, stream);
}

void gc_cuda_convolver_free(gc_cuda_convolver *c) {
    free(c->host_routes);
    free(c->parts);
    *c = (gc_cuda_convolver){0};
}
