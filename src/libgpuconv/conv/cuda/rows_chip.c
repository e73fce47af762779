/*
 * Rows by transforms that a multiprocessor computes alone (rows/chip.cu). The time is that of
 *
 *      rounds of blocks x transforms of a block x the time of a transform
 *
 * which is its latency, or its share of the multiprocessor if several blocks are resident. A fresh response is
 * transformed by each block that uses it, or once for all by a launch before.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

enum { SEGMENTS_MAX = 1 << 28, SPLITS_TRIED = 24 };

/* A transform with its share of the loads and stores: cycles alone on a multiprocessor, with samples in the cache
 * (near) and in memory (far), and the time of a point, per resident block, of that of the largest size. Measured on an
 * H200 (docs/speed.md). */
static const struct {
    double near, far, point;
    double both; /* transforms that a segment of both gradients costs, measured on an H100 */
} sizes[GCK_CHIP_SIZES] = {{1800, 4400, 0.57, 3.8},   {2200, 5700, 0.59, 2.5}, {3000, 9200, 0.66, 2.2},
                           {3960, 9800, 0.6439, 2.1}, {4600, 10500, 0.8, 2.0}, {5940, 5940, 0.9756, 2.5},
                           {9108, 9108, 0.8659, 2.4}, {16236, 16236, 1, 3.9}};

/* What chip_seconds depends on. */
typedef struct work {
    const gc_device *device;
    int64_t slots, groups;    /* blocks that the device holds at a time, and items of a block at a time */
    int64_t items, units;     /* each item is a sum of units, or a row of them */
    double fixed, per_unit;   /* transforms of a block, and of each of its units */
    double latency, resident; /* seconds of a transform alone, and per block of the same multiprocessor */
} work;

gc_rows_kernels gc_chip_query(int size) {
    const gck_chip_sizes s = gck_chip_query(size);
    return (gc_rows_kernels){s.twiddles, s.shared_bytes};
}

double gc_chip_work(int size) {
    return sizes[size].point * (double)gck_chip_query(size).points;
}

/* Returns the blocks that a multiprocessor holds at a time. */
static int64_t resident_blocks(const gc_device *device, const gck_chip_sizes *s) {
    const int64_t n = gc_min(s->resident, device->resident_threads / s->threads);
    return gc_max(gc_min(n, device->resident_shared_memory / (s->shared_bytes + 1024)), 1);
}

/* Returns the seconds if every item is cut into `splits` of its units, and stores the blocks. */
static double chip_seconds(const work *w, int64_t splits, int64_t *blocks) {
    const int64_t needed = gc_divide_up(w->items * splits, w->groups);
    *blocks = gc_min(needed, w->slots);
    const double rounds = (double)gc_divide_up(needed, *blocks);
    const double each = fmax(w->latency, w->resident * (double)gc_divide_up(*blocks, w->device->multiprocessors));
    return rounds * (w->fixed + w->per_unit * (double)gc_divide_up(w->units, splits)) * each;
}

/* Returns the work of a device with kernels of a size. Samples are in memory if they do not fit into the cache. */
static work work_of(const gc_job_shape *s, const gc_device *device, const gc_costs *costs, int size,
                    const gck_chip_sizes *kernels) {
    const double *t = costs->seconds;
    const double samples = (double)s->rows * (double)(s->signal_frames + s->output_frames);
    const bool far = samples * sizeof(float) > (double)device->cache;
    return (work){.device = device,
                  .slots = device->multiprocessors * resident_blocks(device, kernels),
                  .groups = kernels->groups,
                  .latency = (far ? sizes[size].far : sizes[size].near) * t[GC_COST_CUDA_CYCLE],
                  .resident = sizes[size].point * (double)(kernels->points * kernels->groups) * t[GC_COST_CUDA_CHIP] *
                              device->multiprocessors};
}

double gc_chip_seconds(const gc_job_shape *s, const gc_device *device, const gc_costs *costs, int size, int64_t items,
                       double transforms, int64_t *blocks) {
    const gck_chip_sizes kernels = gck_chip_query(size);
    work w = work_of(s, device, costs, size, &kernels);
    w.items = items;
    w.units = 1;
    w.fixed = transforms;
    return chip_seconds(&w, 1, blocks);
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

/* Returns the bytes in which the blocks of a gradient keep spectra: of x and of the sum, and of the response. */
static int64_t scratch_bytes(const gc_job_shape *s, const gc_rows_plan *p) {
    const int64_t groups = gck_chip_query(p->size).groups,
                  spectra = s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH ? 3 : 2;
    return gc_round_up(p->blocks * groups * spectra * p->points * (int64_t)sizeof(float2), 256);
}

/* Plans fresh responses: transformed by the blocks that use them, or once before if that is faster and their spectra
 * fit into the workspace. */
static void plan_fresh(work *w, const gc_job_shape *s, double launch, gc_rows_plan *p) {
    const int64_t each = p->points * (int64_t)sizeof(float2), count = gc_cuda_sharing(s).responses;
    const work spectra = {.device = w->device,
                          .slots = w->slots,
                          .groups = w->groups,
                          .items = count,
                          .units = 1,
                          .per_unit = 1,
                          .latency = w->latency,
                          .resident = w->resident};
    gc_rows_plan before = *p;
    int64_t blocks;
    w->fixed = 0;
    choose_splits(w, launch, 0, &before);
    before.seconds += launch + chip_seconds(&spectra, 1, &blocks);
    before.response_transforms = count;
    before.bytes = count * each;
    w->fixed = 1;
    choose_splits(w, launch, 0, p);
    p->bytes = p->blocks * w->groups * each;
    if (before.seconds < p->seconds && before.bytes <= w->device->workspace)
        *p = before;
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    if (s->routes.routes || gc_rows_cut(s, p) > 1 || s->rows * p->segments > SEGMENTS_MAX)
        return false;
    const bool both = s->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const bool gradient = both || s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const gck_chip_sizes kernels = both ? gck_chip_query_both(p->size) : gck_chip_query(p->size);
    if (kernels.shared_bytes > device->shared_memory)
        return false;
    if (kernels.keeps && p->segments == 1 && !problem->rows.spectra && !s->gates &&
        (both || (s->operation == GPUCONV_ARRAYS_CONVOLVE && p->shift == 0)))
        p->kept = s->rows * p->points * (int64_t)sizeof(float2);
    work w = work_of(s, device, costs, p->size, &kernels);
    if (gradient) {
        const int64_t sums = s->responses * s->taps;
        w.items = s->responses;
        w.units = gc_rows_of_response(s) * p->segments;
        w.fixed = both ? 2 : 1;
        w.per_unit = both ? sizes[p->size].both : 2.7;
        choose_splits(&w, launch, (double)sums * 2 * t[GC_COST_CUDA_OUTPUT], p);
        p->bytes = scratch_bytes(s, p) + (p->splits > 1 ? p->splits * sums * (int64_t)sizeof(float) : 0);
    } else {
        w.items = s->rows;
        w.units = p->segments;
        w.per_unit = 2;
        if (problem->rows.spectra)
            choose_splits(&w, launch, 0, p);
        else
            plan_fresh(&w, s, launch, p);
    }
    return true;
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static cudaError_t run_gradient(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const bool both = job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH;
    const gpuconv_rows *target = both ? &job->response_gradient : &job->response;
    const gc_rows_plan *p = &c->plan;
    const gck_chip_gradient g = {.x = gc_cuda_kernel_rows(&job->signal),
                                 .g = gc_cuda_kernel_rows(&job->output),
                                 .target = {gc_cuda_kernel_rows(target), job->accumulate},
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
                                 .partial = (float *)(void *)((char *)c->workspace + scratch_bytes(&c->shape, p)),
                                 .gated = job->pre || job->post,
                                 .x_gate = gc_cuda_kernel_rows_if(job->pre),
                                 .g_gate = gc_cuda_kernel_rows_if(job->post),
                                 .signal = {gc_cuda_kernel_rows_if(both ? &job->signal_gradient : NULL), 0},
                                 .response = gc_cuda_kernel_rows_if(both ? &job->response : NULL),
                                 .spectra = both && c->prepared ? c->prepared->spectra : NULL,
                                 .transforms = p->kept ? job->transforms : NULL};
    return both ? gck_chip_both(p->size, &g, stream) : gck_chip_gradient_response(p->size, &g, stream);
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_rows_plan *p = &c->plan;
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    if (job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE || job->operation == GPUCONV_ARRAYS_GRADIENT_BOTH)
        return run_gradient(c, stream);
    const float2 *spectra = c->prepared ? c->prepared->spectra : p->response_transforms ? c->workspace : NULL;
    const gck_chip_job k = {.source = gc_cuda_kernel_rows(convolve ? &job->signal : &job->output),
                            .response = gc_cuda_kernel_rows(&job->response),
                            .target = {gc_cuda_kernel_rows(gc_job_written(job)), job->accumulate},
                            .sharing = gc_cuda_sharing(&c->shape),
                            .spectra = spectra,
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
                            .scratch = c->workspace,
                            .transforms = p->kept ? job->transforms : NULL,
                            .gated = job->pre || job->post || job->skip,
                            .gates = gc_cuda_gates(job)};
    cudaError_t err = cudaSuccess;
    if (p->response_transforms)
        err = gck_chip_spectra(p->size, &k.response, p->response_transforms, k.taps, k.twiddles, c->workspace, stream);
    return GC_CUDA_TRY(err, gck_chip_convolve(p->size, &k, stream));
}

static cudaError_t spectra(const gc_cuda_responses *r, const gpuconv_rows *from, const float2 *twiddles,
                           cudaStream_t stream) {
    const gck_rows rows = gc_cuda_kernel_rows(from);
    return gck_chip_spectra(r->plan.size, &rows, r->base.rows, r->base.taps, twiddles, r->spectra, stream);
}

const gc_cuda_rows gc_rows_chip = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 8, 1 << 15),
    .number = {[8] = 1, [9] = 2, [10] = 3, [11] = 4, [12] = 5, [13] = 6, [14] = 7, [15] = 8},
    .load = gck_chip_load,
    .query = gc_chip_query,
    .both = true,
    .gated = true,
    .twiddles = gck_chip_twiddles,
    .spectra = spectra,
    .plan = plan,
    .run = run,
};
