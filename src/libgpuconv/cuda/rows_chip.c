/*
 * Rows by transforms that a multiprocessor computes alone (job_chip.cu). The time is that of
 *
 *      rounds of blocks x transforms of a block x the time of a transform
 *
 * which is its latency, or its share of the multiprocessor if several blocks are resident.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

enum { SEGMENTS_MAX = 1 << 28, SPLITS_TRIED = 24 };

/* A transform with its share of the loads and stores: cycles alone on a multiprocessor, and the time of a point, per
 * resident block, of that of the largest size. Measured on an H200 (docs/speed.md). */
static const struct {
    double cycles, point;
} sizes[GCK_CHIP_SIZES] = {{3960, 0.6439}, {5940, 0.9756}, {9108, 0.8659}, {16236, 1}};

/* What chip_seconds depends on. */
typedef struct work {
    const gc_device *device;
    int64_t slots;            /* blocks that the device holds at a time */
    int64_t items, units;     /* each item is a sum of units, or a row of them */
    double fixed, per_unit;   /* transforms of a block, and of each of its units */
    double latency, resident; /* seconds of a transform alone, and per block of the same multiprocessor */
} work;

static gc_rows_kernels query(int size) {
    const gck_chip_sizes s = gck_chip_query(size);
    return (gc_rows_kernels){s.twiddles, s.shared_bytes};
}

/* Returns the blocks that a multiprocessor holds at a time. */
static int64_t resident_blocks(const gc_device *device, const gck_chip_sizes *s) {
    const int64_t n = gc_min(s->resident, device->resident_threads / s->threads);
    return gc_max(gc_min(n, device->resident_shared_memory / (s->shared_bytes + 1024)), 1);
}

/* Returns the seconds if every item is cut into `splits` of its units, and stores the blocks. */
static double chip_seconds(const work *w, int64_t splits, int64_t *blocks) {
    *blocks = gc_min(w->items * splits, w->slots);
    const double rounds = (double)gc_divide_up(w->items * splits, *blocks);
    const double each = fmax(w->latency, w->resident * (double)gc_divide_up(*blocks, w->device->multiprocessors));
    return rounds * (w->fixed + w->per_unit * (double)gc_divide_up(w->units, splits)) * each;
}

/* Chooses the number of splits of an item: powers of two, three times them, and the most. per_split: seconds; 0: splits
 * are not added up. */
static void choose_splits(const work *w, double launch, double per_split, gc_rows_plan *p) {
    p->seconds = HUGE_VAL;
    for (int i = 0; i < SPLITS_TRIED; i++) {
        const int64_t step = i == 0 ? 1 : i % 2 ? INT64_C(2) << i / 2 : INT64_C(3) << (i / 2 - 1);
        const int64_t splits = gc_min(w->units, step);
        int64_t blocks;
        const double adding = splits > 1 && per_split > 0 ? per_split * (double)splits + launch : 0,
                     seconds = launch + chip_seconds(w, splits, &blocks) + adding;
        if (seconds < p->seconds) {
            p->seconds = seconds;
            p->splits = splits;
            p->blocks = blocks;
        }
        if (splits == w->units)
            break;
    }
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows;
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    if (s->routes.routes || gc_rows_cut(s, p) > 1 || s->rows * p->segments > SEGMENTS_MAX)
        return false;
    const gck_chip_sizes kernels = gck_chip_query(p->size);
    const bool gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    work w = {.device = device,
              .slots = device->multiprocessors * resident_blocks(device, &kernels),
              .latency = sizes[p->size].cycles * t[GC_COST_CUDA_CYCLE],
              .resident = sizes[p->size].point * (double)p->points * t[GC_COST_CUDA_CHIP] * device->multiprocessors};
    if (gradient) {
        const int64_t sums = s->responses * s->taps;
        w.items = s->responses;
        w.units = gc_divide_up(s->rows, s->group * s->responses) * s->group * p->segments;
        w.fixed = 1;
        w.per_unit = 2.7;
        choose_splits(&w, launch, (double)sums * 2 * t[GC_COST_CUDA_OUTPUT], p);
        p->bytes = gc_round_up(p->blocks * 2 * p->points * (int64_t)sizeof(float2), 256) +
                   (p->splits > 1 ? p->splits * sums * (int64_t)sizeof(float) : 0);
    } else {
        w.items = s->rows;
        w.units = p->segments;
        w.fixed = problem->spectra ? 0 : 1;
        w.per_unit = 2;
        choose_splits(&w, launch, 0, p);
        p->bytes = problem->spectra ? 0 : p->blocks * p->points * (int64_t)sizeof(float2);
    }
    return true;
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static cudaError_t run_gradient(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_rows_plan *p = &c->plan;
    const int64_t scratch = gc_round_up(p->blocks * 2 * p->points * (int64_t)sizeof(float2), 256);
    const gck_chip_gradient g = {.x = gc_cuda_kernel_rows(&job->signal),
                                 .g = gc_cuda_kernel_rows(&job->output),
                                 .target = {gc_cuda_kernel_rows(&job->response), job->accumulate},
                                 .sharing = gc_cuda_sharing(&c->shape),
                                 .gain = job->gain,
                                 .taps = c->shape.taps,
                                 .shift = p->shift,
                                 .segments = (int)p->segments,
                                 .hop = (int)p->hop,
                                 .splits = (int)p->splits,
                                 .blocks = (unsigned)p->blocks,
                                 .twiddles = gc_rows_twiddles(c->cuda, p),
                                 .scratch = c->workspace,
                                 .partial = (float *)(void *)((char *)c->workspace + scratch)};
    return gck_chip_gradient_response(p->size, &g, stream);
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_rows_plan *p = &c->plan;
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE)
        return run_gradient(c, stream);
    const gck_chip_job k = {.source = gc_cuda_kernel_rows(convolve ? &job->signal : &job->output),
                            .response = gc_cuda_kernel_rows(&job->response),
                            .target = {gc_cuda_kernel_rows(gc_job_written(job)), job->accumulate},
                            .sharing = gc_cuda_sharing(&c->shape),
                            .spectra = c->prepared ? c->prepared->spectra : NULL,
                            .gain = job->gain,
                            .taps = c->shape.taps,
                            .shift = p->shift,
                            .segments = (int)p->segments,
                            .hop = (int)p->hop,
                            .lo = (int)p->lo,
                            .reflect = !convolve,
                            .splits = (int)p->splits,
                            .blocks = (unsigned)p->blocks,
                            .twiddles = gc_rows_twiddles(c->cuda, p),
                            .scratch = c->workspace};
    return gck_chip_convolve(p->size, &k, stream);
}

static cudaError_t spectra(const gc_cuda_responses *r, const gpuconv_rows *from, const float2 *twiddles,
                           cudaStream_t stream) {
    const gck_rows rows = gc_cuda_kernel_rows(from);
    return gck_chip_spectra(r->plan.size, &rows, r->base.rows, r->base.taps, twiddles, r->spectra, stream);
}

const gc_cuda_rows gc_rows_chip = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 11, 1 << 15),
    .number = {[11] = 1, [13] = 2, [14] = 3, [15] = 4},
    .load = gck_chip_load,
    .query = query,
    .twiddles = gck_chip_twiddles,
    .spectra = spectra,
    .plan = plan,
    .run = run,
};
