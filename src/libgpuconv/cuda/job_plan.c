/*
 * Plans of jobs on device memory. The cost model:
 *
 *      on the chip     rounds of blocks x transforms of a block x the time of a transform, which is its latency, or its
 *                      share of the multiprocessor if several blocks are resident
 *      three kernels   bytes that cross the memory / bandwidth, and a time per launch
 *      direct sums     job_plan_direct.c
 *
 * Its constants were measured on an H200 (docs/speed.md).
 */
#include "job_plan.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

enum { ALIGNMENT = 32, GRID_MAX = 65535, SEGMENTS_MAX = 1 << 28, SPLITS_TRIED = 24 };

static const double launch_seconds = 3e-6;

/* Seconds of one transform with its share of the loads and stores: alone on a multiprocessor, and per resident block.
 */
static const struct {
    double alone, shared;
} chip_seconds[GCK_CHIP_SIZES] = {{2.0e-6, 0.33e-6}, {3.0e-6, 2.0e-6}, {4.6e-6, 3.55e-6}, {8.2e-6, 8.2e-6}};

/* Seconds of a point of a transform in three kernels, at this bandwidth. */
static const double three_seconds[GCK_3PASS_SIZES] = {12.5e-12, 12.5e-12, 13.5e-12, 15.5e-12, 17.5e-12, 19e-12, 22e-12};
static const double three_bandwidth = 4.1e12;

static int64_t divide_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

static int64_t points_of(gc_job_transform t) {
    return t.kind == GC_JOB_CHIP ? gck_chip_query(t.size).points : gck_3pass_query(t.size).points;
}

bool gc_job_transform_fits(const gc_job_device *device, gc_job_transform t) {
    return t.kind == GC_JOB_DIRECT ||
           (t.kind == GC_JOB_CHIP ? gck_chip_query(t.size).shared_bytes : gck_3pass_query(t.size).shared_bytes) <=
               device->shared_block;
}

int64_t gc_job_parts(gc_job_transform t, int64_t taps) {
    const int64_t points = points_of(t);
    return taps <= points + points / 2 ? 1 : divide_up(taps, points);
}

/* Returns the blocks that a multiprocessor holds at a time. */
static int resident_blocks(const gc_job_device *device, const gck_chip_sizes *sizes) {
    int64_t n = gc_min(sizes->resident, device->threads / sizes->threads);
    n = gc_min(n, device->shared / (sizes->shared_bytes + 1024));
    return (int)gc_max(n, 1);
}

/* Fills the cut of the job into segments. Returns false if the transform is too small for the responses. */
static bool cut(const gc_job_shape *s, gc_job_transform t, gc_job_plan *p) {
    const int64_t points = points_of(t), parts = gc_job_parts(t, s->taps);
    if (t.kind == GC_JOB_CHIP && parts > 1)
        return false;
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    /* Segments begin at multiples of ALIGNMENT frames, so that accesses to aligned rows are whole sectors. */
    const int64_t overlap = gc_round_up(s->taps - 1, ALIGNMENT),
                  frames = convolve ? s->output_frames : s->signal_frames;
    const int64_t hop = parts == 1 ? 2 * points - overlap : points;
    *p = (gc_job_plan){.transform = t,
                       .points = points,
                       .hop = hop,
                       .part_taps = parts == 1 ? s->taps : points,
                       .parts = parts,
                       .segments = divide_up(frames, hop),
                       .lo = !convolve    ? 0
                             : parts == 1 ? overlap
                                          : points};
    p->shift = convolve ? s->offset - p->lo - (parts - 1) * hop : -s->offset;
    /* A convolution that fits into one transform as a whole does not wrap around. */
    if (convolve && parts == 1 && s->offset >= 0 && s->signal_frames + s->taps - 1 <= 2 * points &&
        s->offset + frames <= 2 * points) {
        p->hop = frames;
        p->segments = 1;
        p->lo = s->offset;
        p->shift = 0;
    }
    return true;
}

/* ---- On the chip ------------------------------------------------------------------------------------------------- */

/* Returns the seconds if every item is cut into `splits` of its `units`, and fills plan->blocks. fixed, per_unit:
 * transforms per block and per unit. */
static double chip_time(const gc_job_device *device, const gck_chip_sizes *sizes, gc_job_plan *p, int64_t items,
                        int64_t units, int64_t splits, double fixed, double per_unit) {
    const int64_t slots = (int64_t)device->multiprocessors * resident_blocks(device, sizes);
    const int64_t blocks = gc_min(items * splits, slots), rounds = divide_up(items * splits, blocks);
    const double co_resident = (double)divide_up(blocks, device->multiprocessors);
    const double each =
        fmax(chip_seconds[p->transform.size].alone, chip_seconds[p->transform.size].shared * co_resident);
    p->blocks = blocks;
    return (double)rounds * (fixed + per_unit * (double)divide_up(units, splits)) * each;
}

/* Chooses the number of splits of an item: powers of two, three times them, and the most. */
static void choose_splits(const gc_job_device *device, const gck_chip_sizes *sizes, gc_job_plan *p, int64_t items,
                          int64_t units, double fixed, double per_unit, double per_split) {
    int64_t best = 1;
    double least = HUGE_VAL;
    for (int i = 0; i < SPLITS_TRIED; i++) {
        const int64_t step = i == 0 ? 1 : i % 2 ? INT64_C(2) << i / 2 : INT64_C(3) << (i / 2 - 1);
        const int64_t splits = gc_min(units, step);
        const double seconds = chip_time(device, sizes, p, items, units, splits, fixed, per_unit) +
                               (splits > 1 ? per_split * (double)splits + (per_split > 0 ? launch_seconds : 0) : 0);
        if (seconds < least) {
            least = seconds;
            best = splits;
        }
        if (splits == units)
            break;
    }
    chip_time(device, sizes, p, items, units, best, fixed, per_unit);
    p->splits = best;
    p->seconds = launch_seconds + least;
}

static bool plan_chip(const gc_job_device *device, const gc_job_shape *s, bool prepared, gc_job_transform t,
                      gc_job_plan *p) {
    if (s->routes.routes || !cut(s, t, p) || s->rows * p->segments > SEGMENTS_MAX)
        return false;
    const gck_chip_sizes sizes = gck_chip_query(t.size);
    if (s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE) {
        const int64_t units = divide_up(s->rows, s->group * s->responses) * s->group * p->segments;
        choose_splits(device, &sizes, p, s->responses, units, 1.0, 2.7,
                      (double)(s->responses * s->taps) * 8 / device->bandwidth);
        p->bytes = gc_round_up(p->blocks * 2 * p->points * (int64_t)sizeof(float2), 256);
        p->bytes += p->splits > 1 ? p->splits * s->responses * s->taps * (int64_t)sizeof(float) : 0;
    } else {
        choose_splits(device, &sizes, p, s->rows, p->segments, prepared ? 0.0 : 1.0, 2.0, 0.0);
        p->bytes = prepared ? 0 : p->blocks * p->points * (int64_t)sizeof(float2);
    }
    return true;
}

/* ---- In three kernels -------------------------------------------------------------------------------------------- */

/* Fills the chunks of the job. in, out: transforms of a row (or batch) per segment; beside the sources before or behind
 * the segments that `parts` need. */
static void cut_chunks(const gc_job_device *device, const gc_job_shape *s, gc_job_plan *p, int64_t items, int64_t in,
                       int64_t out) {
    const int64_t most = gc_max(1, device->chunk_bytes / (p->points * (int64_t)sizeof(float2)));
    const int64_t channels = gc_max(gc_max(s->routes.inputs, s->routes.outputs), 1);
    const int64_t each = in * (p->segments + p->parts - 1) + out * p->segments + (p->rolling ? p->parts : 0);
    p->chunk_segments = gc_min(p->segments, GRID_MAX / 2);
    p->rows = gc_min(gc_min(items, gc_max(1, most / gc_max(each, 1))), gc_max(1, GRID_MAX / channels));
    if (each > most)
        p->chunk_segments = gc_max(1, gc_min(p->chunk_segments, (most - in * (p->parts - 1)) / gc_max(in + out, 1)));
    if (p->rows >= s->group && !s->routes.routes && s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE && p->rolling)
        p->rows = p->rows / s->group * s->group;
    const int64_t chunks = divide_up(items, p->rows);
    if (s->group == 1 || s->routes.routes)
        p->rows = divide_up(items, chunks);
}

/* Returns the most responses that a chunk of rows uses. */
static int64_t chunk_responses(const gc_job_shape *s, const gc_job_plan *p) {
    return p->rolling ? gc_min(s->responses, divide_up(p->rows, s->group) + 1) : s->responses;
}

/* Splits of the sums of a gradient, so that the warps fill the device. */
static int64_t splits_of(const gc_job_device *device, const gc_job_shape *s, const gc_job_plan *p) {
    const int64_t warps = chunk_responses(s, p) * p->parts * (p->points / 1024);
    const int64_t units =
        p->chunk_segments * divide_up(p->rows, gc_max(1, s->routes.routes ? 1 : chunk_responses(s, p)));
    return gc_max(1, gc_min(gc_min(units, 64), divide_up((int64_t)device->multiprocessors * 16, warps)));
}

static bool plan_3pass(const gc_job_device *device, const gc_job_shape *s, bool prepared, gc_job_transform t,
                       gc_job_plan *p) {
    if (!cut(s, t, p))
        return false;
    const bool routed = s->routes.routes > 0, gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const int64_t sources = !routed                                          ? 1
                            : s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? s->routes.outputs
                                                                             : s->routes.inputs;
    const int64_t targets = !routed                                          ? 1
                            : s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL ? s->routes.inputs
                                                                             : s->routes.outputs;
    p->sums = !gradient && (routed || p->parts > 1);
    p->rolling = !routed && !prepared && divide_up(s->rows, s->group) <= s->responses;
    const int64_t items = routed ? s->batch : s->rows;
    cut_chunks(device, s, p, items, sources, p->sums || gradient ? targets : 0);
    if (p->rolling && gradient && p->rows < s->group) {
        p->rolling = false; /* the rows of a response are in several chunks */
        cut_chunks(device, s, p, items, sources, targets);
    }
    const int64_t behind = p->chunk_segments + p->parts - 1;
    if (gradient) {
        p->splits = splits_of(device, s, p);
        p->response_transforms = chunk_responses(s, p) * p->parts * (p->splits + 1);
        p->source_transforms = p->rows * sources * p->chunk_segments;
        p->result_transforms = p->rows * targets * behind;
    } else {
        p->response_transforms = prepared ? 0 : chunk_responses(s, p) * p->parts;
        p->source_transforms = p->rows * sources * behind;
        p->result_transforms = p->sums ? p->rows * targets * p->chunk_segments : 0;
    }
    p->bytes =
        (p->response_transforms + p->source_transforms + p->result_transforms) * p->points * (int64_t)sizeof(float2);
    const double rows = (double)items * (double)p->segments * (double)gc_max(sources, targets);
    const double terms = (double)gc_max(1, s->routes.routes) / (double)targets * (double)p->parts;
    const double responses = (double)s->responses * (double)p->parts * (gradient ? 0.6 : prepared ? 0.1 : 0.3);
    const double chunks = (double)divide_up(items, p->rows) * (double)divide_up(p->segments, p->chunk_segments);
    const double each = three_seconds[t.size] * (double)p->points * three_bandwidth / device->bandwidth;
    p->seconds = each * (rows * ((gradient ? 1.25 : 1.0) + 0.4 * (terms - 1)) + responses) +
                 chunks * (gradient || !prepared ? 4 : 3) * launch_seconds;
    return true;
}

/* ---- The choice -------------------------------------------------------------------------------------------------- */

static bool same(gc_job_transform a, gc_job_transform b) {
    return a.kind == b.kind && a.size == b.size;
}

gc_job_transform gc_job_transform_number(int number) {
    if (number < GCK_CHIP_SIZES)
        return (gc_job_transform){GC_JOB_CHIP, number};
    number -= GCK_CHIP_SIZES;
    return number < GCK_3PASS_SIZES ? (gc_job_transform){GC_JOB_3PASS, number} : (gc_job_transform){GC_JOB_DIRECT, 0};
}

static bool make(const gc_job_device *device, const gc_job_shape *s, bool kept, gc_job_transform t, gc_job_plan *p) {
    switch (t.kind) {
    case GC_JOB_CHIP:
        return plan_chip(device, s, kept, t, p);
    case GC_JOB_3PASS:
        return plan_3pass(device, s, kept, t, p);
    case GC_JOB_DIRECT:
        break;
    }
    return !kept && gc_job_plan_direct(device, s, p);
}

void gc_job_plan_make(const gc_job_device *device, const gc_job_shape *s, bool kept, const gc_job_transform *only,
                      gc_job_plan *plan) {
    bool found = false;
    for (int i = 0; i < GC_JOB_TRANSFORMS; i++) {
        const gc_job_transform t = gc_job_transform_number(i);
        gc_job_plan p;
        if ((only && !same(t, *only)) || !gc_job_transform_fits(device, t))
            continue;
        if (make(device, s, kept, t, &p)) {
            if (!found || p.seconds < plan->seconds)
                *plan = p;
            found = true;
        }
    }
}
