/*
 * Rows by transforms that a multiprocessor computes alone (job_chip.cu). The time is that of
 *
 *      rounds of blocks x transforms of a block x the time of a transform
 *
 * which is its latency, or its share of the multiprocessor if several blocks are resident.
 */
#include "job_plan.h"

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

static int shared_bytes(int size) {
    return gck_chip_query(size).shared_bytes;
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
static void choose_splits(const work *w, double launch, double per_split, gc_job_plan *p) {
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

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_job_plan *p) {
    const gc_job_shape *s = &problem->rows;
    const int size = p->transform.size;
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    if (s->routes.routes || gc_rows_cut(s, p) > 1 || s->rows * p->segments > SEGMENTS_MAX)
        return false;
    const gck_chip_sizes kernels = gck_chip_query(size);
    const bool gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    work w = {.device = device,
              .slots = device->multiprocessors * resident_blocks(device, &kernels),
              .latency = sizes[size].cycles * t[GC_COST_CUDA_CYCLE],
              .resident = sizes[size].point * (double)p->points * t[GC_COST_CUDA_CHIP] * device->multiprocessors};
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

const gc_cuda_rows gc_rows_chip = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 11, 1 << 15),
    .number = {[11] = 1, [13] = 2, [14] = 3, [15] = 4},
    .shared_bytes = shared_bytes,
    .plan = plan,
};
