/*
 * Uniformly partitioned convolution on the device: cost and set-up. Transforms beyond GCK_PARTITIONED_POINTS_MAX points
 * are computed in three kernels (partitioned_long.cu), shorter ones in one, two blocks at a time (partitioned.cu).
 */
#include "cuda_algorithm.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

static bool is_long(const gc_schedule *s) {
    return s->transform > GCK_PARTITIONED_POINTS_MAX;
}

/* Returns the number of partitions that the kernels of short transforms compute: the schedule's, padded with zeros. */
static int64_t short_partitions(const gc_schedule *s) {
    return gc_round_up(s->partitions, GCK_PARTITION_STEP);
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

static bool fits(const gc_problem *p, const gc_device *d, int64_t points, int form, gc_choice *c) {
    gc_schedule *s = &c->schedule;
    if (form || !gc_schedule_partitioned(p->ir->frames, points, s))
        return false;
    if (!is_long(s))
        return gck_partitioned_shared_bytes(points) <= d->shared_memory;
    const gck_long_partitioned_sizes size = gck_long_partitioned_query(points);
    return size.spectrum && size.shared_bytes <= d->shared_memory &&
           s->partitions + gc_cuda_chunk(&gc_cuda_partitioned, p, s) / s->hop <= GCK_LONG_PARTITIONED_BLOCKS_MAX;
}

static int64_t step(const gc_schedule *s) {
    return is_long(s) ? s->hop : 2 * s->hop;
}

/* Each chunk computes the spectra of the history again. */
static int64_t chunk(const gc_schedule *s) {
    return step(s) * s->partitions;
}

/* Returns the seconds of partitioned convolution with long transforms. GC_COST_CUDA_LONG is the time of a point that
 * crosses the memory with 48 bytes: samples in and out, the scratch memory written and read twice. Here a transform
 * forward or back takes 32 bytes, and a product of eight blocks reads the spectra of all partitions and of as many
 * blocks and seven more. */
static double long_seconds(const gc_costs *costs, const gpuconv_ir *ir, const gc_schedule *s, int64_t frames,
                           double total) {
    const double blocks = (double)(frames / s->hop), partitions = (double)s->partitions,
                 chunks = ceil(total / (double)frames), groups = ceil(blocks / 8);
    const double transforms = ir->inputs * (blocks + partitions - 1) + ir->outputs * blocks;
    const double products = ir->routes * groups * (2 * partitions + 7) + ir->outputs * blocks;
    const double point = costs->seconds[GC_COST_CUDA_LONG] * gc_cuda_slowdown(s->transform, true) / 48;
    return chunks * ((double)s->transform / 2 * point * (32 * transforms + 8 * products) +
                     8 * costs->seconds[GC_COST_CUDA_LAUNCH]);
}

/* Returns the seconds with short transforms. */
static double short_seconds(const gc_costs *costs, const gpuconv_ir *ir, const gc_schedule *s, int64_t frames,
                            double total) {
    const double *t = costs->seconds, n = (double)s->transform;
    const double pairs = (double)(frames / (2 * s->hop)), chunks = ceil(total / (double)frames);
    const double spectra = ir->inputs * (pairs + (double)s->partitions - 1) + ir->outputs * pairs;
    const double products = ir->routes * pairs * (double)short_partitions(s);
    return chunks * (spectra * n * fmax(log2(n) * t[GC_COST_CUDA_LEVEL], t[GC_COST_CUDA_PASS]) +
                     products * n * t[GC_COST_CUDA_BIN]) +
           7 * t[GC_COST_CUDA_LAUNCH];
}

static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *c,
                      double total) {
    (void)d;
    const gc_schedule *s = &c->schedule;
    return is_long(s) ? total * p->ir->outputs * costs->seconds[GC_COST_CUDA_OUTPUT] +
                            long_seconds(costs, p->ir, s, c->chunk, total)
                      : short_seconds(costs, p->ir, s, c->chunk, total);
}

static double bytes(const gc_problem *p, const gc_device *d, const gc_choice *c) {
    (void)d;
    const gc_schedule *s = &c->schedule;
    const double n = (double)s->transform, inputs = p->ir->inputs, outputs = p->ir->outputs, planes = p->ir->planes;
    if (is_long(s)) {
        const double partitions = (double)s->partitions, blocks = (double)c->chunk / (double)s->hop;
        return 4 * n * (planes * partitions + inputs * (partitions - 1 + blocks) + outputs * blocks);
    }
    const double partitions = (double)short_partitions(s), pairs = (double)c->chunk / (2 * (double)s->hop);
    return 8 * n * (planes * partitions + inputs * (partitions + pairs) + outputs * pairs);
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void init_short(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses,
                       gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->choice.schedule;
    gck_partitioning *p = &c->partitioning;
    int64_t spectrum = s->transform * (int64_t)sizeof(float2);
    *p = (gck_partitioning){.points = s->transform,
                            .partition_taps = s->partition,
                            .partitions = short_partitions(s),
                            .reach = s->partitions,
                            .pairs = plan->choice.chunk / (2 * s->hop)};
    int64_t delay_bytes = ir->inputs * (p->partitions - 1 + p->pairs) * spectrum;
    p->table = gc_cuda_roots(r, s->transform);
    p->spectra = gc_cuda_memory(r, ir->planes * p->partitions * spectrum);
    GC_CUDA_TRY(r->err, gck_partitioned_spectra(p, responses, stream));
    p->delay = gc_cuda_memory(r, delay_bytes);
    GC_CUDA_TRY(r->err, cudaMemsetAsync(p->delay, 0, (size_t)delay_bytes, stream));
    p->sums = gc_cuda_memory(r, ir->outputs * p->pairs * spectrum);
}

static void init_long(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses,
                      gc_cuda_resources *r, cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->choice.schedule;
    const int64_t each = sizeof(float2);
    const gck_long_partitioned_sizes sizes = gck_long_partitioned_query(s->transform);
    gck_long_partitioning *p = &c->long_partitioning;
    *p = (gck_long_partitioning){
        .points = s->transform, .partitions = (int)s->partitions, .blocks = (int)(plan->choice.chunk / s->hop)};
    float2 *twiddles = gc_cuda_host_table(r, sizes.twiddles, each);
    if (twiddles)
        gck_long_partitioned_twiddles(s->transform, twiddles);
    p->twiddles = gc_cuda_upload(r, twiddles, sizes.twiddles * each);
    free(twiddles);
    p->spectra = gc_cuda_memory(r, ir->planes * p->partitions * sizes.spectrum * each);
    p->delay = gc_cuda_memory(r, ir->inputs * ((int64_t)p->partitions - 1 + p->blocks) * sizes.spectrum * each);
    p->sums = gc_cuda_memory(r, ir->outputs * (int64_t)p->blocks * sizes.spectrum * each);
    GC_CUDA_TRY(r->err, gck_long_partitioned_spectra(p, responses, stream));
}

static void init(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    if (is_long(&plan->choice.schedule))
        init_long(c, plan, responses, r, stream);
    else
        init_short(c, plan, responses, r, stream);
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_matrix *m, int64_t frames, cudaStream_t stream) {
    (void)frames;
    return is_long(&c->schedule) ? gck_long_partitioned(m, &c->long_partitioning, stream)
                                 : gck_partitioned(m, &c->partitioning, stream);
}

const gc_cuda_algorithm gc_cuda_partitioned = {
    .row = GC_CUDA_ROW(GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GCK_PARTITIONED_POINTS_MIN,
                       GCK_OVERLAP_SAVE_POINTS_MAX, gc_cuda_refuse),
    .schedule = gc_schedule_partitioned,
    .step = step,
    .chunk = chunk,
    .seconds = seconds,
    .bytes = bytes,
    .init = init,
    .run = run,
};
