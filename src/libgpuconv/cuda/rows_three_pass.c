/*
 * Rows by transforms in three kernels (three_pass_columns.cu, three_pass_rows.cu), for any number of taps. The time is
 * that of the points that cross the memory, and of the launches.
 */
#include "job_plan.h"

#include "libgpuconv/core/memory.h"

enum { GRID_MAX = 65535 };

/* The time of a point by size, in those of overlap-save in three kernels, measured on an H200: the columns of rows
 * allow any position and type of samples, and larger transforms find less in the caches. */
static const double size_point[GCK_3PASS_SIZES] = {1.333, 1.333, 1.44, 1.653, 1.866, 2.026, 2.346};

static int shared_bytes(int size) {
    return gck_3pass_query(size).shared_bytes;
}

/* Fills the chunks of the job. in, out: transforms of a row (or batch) per segment; beside the sources before or behind
 * the segments that `parts` need. */
static void cut_chunks(const gc_device *device, const gc_job_shape *s, gc_job_plan *p, int64_t items, int64_t in,
                       int64_t out) {
    const int64_t most = gc_max(1, device->workspace / (p->points * (int64_t)sizeof(float2)));
    const int64_t channels = gc_max(gc_max(s->routes.inputs, s->routes.outputs), 1);
    const int64_t each = in * (p->segments + p->parts - 1) + out * p->segments + (p->rolling ? p->parts : 0);
    p->chunk_segments = gc_min(p->segments, GRID_MAX / 2);
    p->rows = gc_min(gc_min(items, gc_max(1, most / gc_max(each, 1))), gc_max(1, GRID_MAX / channels));
    if (each > most)
        p->chunk_segments = gc_max(1, gc_min(p->chunk_segments, (most - in * (p->parts - 1)) / gc_max(in + out, 1)));
    if (p->rows >= s->group && !s->routes.routes && s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE && p->rolling)
        p->rows = p->rows / s->group * s->group;
    const int64_t chunks = gc_divide_up(items, p->rows);
    if (s->group == 1 || s->routes.routes)
        p->rows = gc_divide_up(items, chunks);
}

/* Returns the most responses that a chunk of rows uses. */
static int64_t chunk_responses(const gc_job_shape *s, const gc_job_plan *p) {
    return p->rolling ? gc_min(s->responses, gc_divide_up(p->rows, s->group) + 1) : s->responses;
}

/* Splits of the sums of a gradient, so that the warps fill the device. */
static int64_t splits_of(const gc_device *device, const gc_job_shape *s, const gc_job_plan *p) {
    const int64_t warps = chunk_responses(s, p) * p->parts * (p->points / 1024);
    const int64_t units =
        p->chunk_segments * gc_divide_up(p->rows, gc_max(1, s->routes.routes ? 1 : chunk_responses(s, p)));
    return gc_max(1, gc_min(gc_min(units, 64), gc_divide_up((int64_t)device->multiprocessors * 16, warps)));
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_job_plan *p) {
    const gc_job_shape *s = &problem->rows;
    (void)gc_rows_cut(s, p);
    const bool routed = s->routes.routes > 0, gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const bool transposed = s->operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    const int64_t sources = !routed ? 1 : transposed ? s->routes.outputs : s->routes.inputs;
    const int64_t targets = !routed ? 1 : transposed ? s->routes.inputs : s->routes.outputs;
    p->sums = !gradient && (routed || p->parts > 1);
    p->rolling = !routed && !problem->spectra && gc_divide_up(s->rows, s->group) <= s->responses;
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
        p->response_transforms = problem->spectra ? 0 : chunk_responses(s, p) * p->parts;
        p->source_transforms = p->rows * sources * behind;
        p->result_transforms = p->sums ? p->rows * targets * p->chunk_segments : 0;
    }
    p->bytes =
        (p->response_transforms + p->source_transforms + p->result_transforms) * p->points * (int64_t)sizeof(float2);
    const double rows = (double)items * (double)p->segments * (double)gc_max(sources, targets);
    const double terms = (double)gc_max(1, s->routes.routes) / (double)targets * (double)p->parts;
    const double responses = (double)s->responses * (double)p->parts * (gradient ? 0.6 : problem->spectra ? 0.1 : 0.3);
    const double chunks = (double)gc_divide_up(items, p->rows) * (double)gc_divide_up(p->segments, p->chunk_segments);
    const double each = size_point[p->transform.size] * (double)p->points * costs->seconds[GC_COST_CUDA_LONG];
    p->seconds =
        each * (rows * ((gradient ? 1.25 : 1.0) + 0.4 * (terms - 1)) + responses) +
        chunks * (gradient || !problem->spectra ? 4 : 3) * GC_ROWS_LAUNCH * costs->seconds[GC_COST_CUDA_LAUNCH];
    return true;
}

const gc_cuda_rows gc_rows_three_pass = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 15, 1 << 21),
    .number = {[15] = 1, [16] = 2, [17] = 3, [18] = 4, [19] = 5, [20] = 6, [21] = 7},
    .shared_bytes = shared_bytes,
    .plan = plan,
};
