/* Uniformly partitioned convolution on the device: cost and set-up. Transforms beyond 8192 points take three
 * kernels, the others one, for two blocks at a time. */
#include "cuda_algorithm.h"

#include <math.h>

/* Returns the sizes of the kernels of a schedule. */
static gck_partitioned_sizes sizes_of(const gc_schedule *s) {
    return gck_partitioned_query(s->transform);
}

/* Returns whether a transform takes three kernels. */
static bool is_long(const gc_schedule *s) {
    return sizes_of(s).blocks == 1;
}

/* Returns the transforms of a chunk of each channel. */
static int64_t transforms_of(const gc_choice *c) {
    return c->chunk / (sizes_of(&c->schedule).blocks * c->schedule.hop);
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

static bool fits(const gc_problem *p, const gc_device *d, int64_t points, int form, gc_choice *c) {
    const gck_partitioned_sizes size = gck_partitioned_query(points);
    return form == 0 && size.spectrum && size.shared_bytes <= d->shared_memory &&
           gc_schedule_partitioned(p->stream.ir->frames, points, &c->schedule);
}

static int64_t step(const gc_schedule *s) {
    return sizes_of(s).blocks * s->hop;
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
    const int64_t hops = frames / s->hop;
    const double blocks = (double)hops, partitions = (double)s->partitions, chunks = ceil(total / (double)frames),
                 groups = ceil(blocks / 8);
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
    const int64_t steps = frames / (2 * s->hop);
    const double pairs = (double)steps, chunks = ceil(total / (double)frames);
    const double spectra = ir->inputs * (pairs + (double)s->partitions - 1) + ir->outputs * pairs;
    const double products = ir->routes * pairs * (double)s->partitions;
    return chunks * (spectra * n * fmax(log2(n) * t[GC_COST_CUDA_LEVEL], t[GC_COST_CUDA_PASS]) +
                     products * n * t[GC_COST_CUDA_BIN]) +
           7 * t[GC_COST_CUDA_LAUNCH];
}

static double seconds(const gc_problem *p, const gc_device *d, const gc_costs *costs, const gc_choice *c,
                      double total) {
    (void)d;
    const gc_schedule *s = &c->schedule;
    if (s->partitions + transforms_of(c) > sizes_of(s).transforms_max)
        return HUGE_VAL;
    return is_long(s) ? total * p->stream.ir->outputs * costs->seconds[GC_COST_CUDA_OUTPUT] +
                            long_seconds(costs, p->stream.ir, s, c->chunk, total)
                      : short_seconds(costs, p->stream.ir, s, c->chunk, total);
}

static double bytes(const gc_problem *p, const gc_device *d, const gc_choice *c) {
    (void)d;
    const double partitions = (double)c->schedule.partitions, transforms = (double)transforms_of(c);
    return 8 * (double)sizes_of(&c->schedule).spectrum *
           (p->stream.ir->planes * partitions + p->stream.ir->inputs * (partitions - 1 + transforms) +
            p->stream.ir->outputs * transforms);
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static void init(gc_cuda_convolver *c, const gpuconv_plan *plan, const gck_responses *responses, gc_cuda_resources *r,
                 cudaStream_t stream) {
    const gpuconv_ir *ir = plan->ir;
    const gc_schedule *s = &plan->choice.schedule;
    const gck_partitioned_sizes sizes = sizes_of(s);
    const int64_t spectrum = sizes.spectrum * (int64_t)sizeof(float2);
    gck_partitioning *p = &c->partitioning;
    *p = (gck_partitioning){
        .points = s->transform, .partitions = (int)s->partitions, .transforms = (int)transforms_of(&plan->choice)};
    p->twiddles = gc_cuda_twiddles(r, gck_partitioned_twiddles, s->transform, sizes.twiddles);
    p->spectra = gc_cuda_memory(r, ir->planes * p->partitions * spectrum);
    p->delay = gc_cuda_memory(r, ir->inputs * ((int64_t)p->partitions - 1 + p->transforms) * spectrum);
    p->sums = gc_cuda_memory(r, ir->outputs * (int64_t)p->transforms * spectrum);
    GC_CUDA_TRY(r->err, gck_partitioned_spectra(p, responses, stream));
}

static cudaError_t run(const gc_cuda_convolver *c, const gck_routes *m, int64_t frames, cudaStream_t stream) {
    (void)frames;
    return gck_partitioned(m, &c->partitioning, stream);
}

const gc_cuda_algorithm gc_cuda_partitioned = {
    .row = GC_CUDA_ROW(GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GCK_PARTITIONED_POINTS_MIN,
                       GCK_OVERLAP_SAVE_POINTS_MAX, NULL),
    .schedule = gc_schedule_partitioned,
    .step = step,
    .chunk = chunk,
    .seconds = seconds,
    .bytes = bytes,
    .init = init,
    .run = run,
};
