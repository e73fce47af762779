/*
 * Filters that change with time, and their gradients, by transforms that a multiprocessor computes alone
 * (rows/varying.cu). A block of the signal is cut into pieces and its response into parts, so that both fit into a
 * transform. The pieces of a convolution overlap in the output: it takes `launches` launches, each of pieces that do
 * not overlap. A filter that crosses to the next one takes everything twice, once for each of the two responses.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

enum { ITEMS_MAX = 1 << 29 };

/* Cuts the blocks of a convolution. Piece j and piece j + launches do not overlap, and what lies between their first
 * frames fits into a transform. Returns false if taps are too many for the blocks. */
static bool cut_convolution(const gc_job_shape *s, gc_rows_plan *p) {
    for (int64_t launches = 1; launches <= 2 * p->points; launches++) {
        const int64_t most = gc_min(s->hop, 2 * p->points / launches), pieces = gc_divide_up(s->hop, most);
        const int64_t piece = gc_divide_up(s->hop, pieces);
        const int64_t missing = (pieces * piece - s->hop) * gc_divide_up(launches, pieces); /* of the last pieces */
        if (launches * piece - missing >= piece + p->part_taps - 1) {
            p->hop = piece;
            p->segments = pieces;
            p->launches = launches;
            return true;
        }
    }
    return false;
}

/* Returns the bytes in which the blocks of a launch keep spectra. */
static int64_t scratch_bytes(const gc_job_shape *s, const gc_rows_plan *p) {
    const int64_t kept = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? 2 : 1;
    return gc_round_up(p->blocks * gck_chip_query(p->size).groups * kept * p->points * (int64_t)sizeof(float2), 256);
}

/* Returns whether the results are summed in the workspace. */
static bool has_sums(const gc_job_shape *s, const gc_rows_plan *p) {
    return s->narrow && s->operation != GPUCONV_ARRAYS_GRADIENT_RESPONSE &&
           p->launches * p->parts * (1 + s->linear) > 1;
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE,
               by_response = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    if (!s->hop)
        return false;
    p->parts = gc_divide_up(s->taps, p->points);
    p->part_taps = gc_divide_up(s->taps, p->parts);
    p->launches = 1;
    p->hop = gc_min(s->hop, 2 * p->points - p->part_taps + 1);
    p->segments = gc_divide_up(s->hop, p->hop);
    p->hop = gc_divide_up(s->hop, p->segments);
    if (convolve && !cut_convolution(s, p))
        return false;
    const gck_sharing sharing = gc_cuda_sharing(s);
    const int64_t rows = gc_rows_of_response(s);
    /* The pieces that cover the output; its frames before the first block and behind the last one are written too. */
    p->lo = convolve && s->offset < 0 ? gc_divide_up(-s->offset, s->hop) : 0;
    const int64_t reach = convolve ? gc_max(s->signal_frames, s->output_frames + s->offset) : s->signal_frames,
                  pieces = (p->lo + gc_divide_up(reach, s->hop)) * p->segments,
                  count = by_response ? s->blocks : gc_divide_up(pieces, p->launches),
                  items = by_response ? sharing.responses * count : sharing.responses * rows * count;
    if (gc_max(gc_max(items, pieces), s->rows * pieces) > ITEMS_MAX)
        return false;
    const double passes = (double)(p->launches * p->parts * (1 + s->linear)),
                 transforms = by_response ? 1 + 2.7 * (double)(rows * p->segments) : 3;
    p->seconds = passes * (launch + gc_chip_seconds(s, device, costs, p->size, items, transforms, &p->blocks));
    p->bytes = scratch_bytes(s, p);
    if (has_sums(s, p))
        p->bytes += s->rows * (convolve ? s->output_frames : s->signal_frames) * (int64_t)sizeof(float);
    p->tiles = count;
    return true;
}

/* Queues the launches of a part of the taps. */
static cudaError_t run_part(const gc_cuda_call *c, gck_varying_job *j, bool accumulate, cudaStream_t stream) {
    const gc_rows_plan *p = &c->plan;
    cudaError_t err = cudaSuccess;
    for (int64_t i = 0; i < p->launches; i++) {
        j->first = (int)i;
        j->accumulate = accumulate || i;
        GC_CUDA_TRY(err, c->shape.operation == GPUCONV_ARRAYS_CONVOLVE ? gck_varying_convolve(p->size, j, stream)
                         : c->shape.operation == GPUCONV_ARRAYS_GRADIENT_SIGNAL
                             ? gck_varying_signal(p->size, j, stream)
                             : gck_varying_response(p->size, j, stream));
    }
    return err;
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_job_shape *s = &c->shape;
    const gc_rows_plan *p = &c->plan;
    gck_varying_job j = {.signal = gc_cuda_kernel_rows(&job->signal),
                         .response = gc_cuda_kernel_rows(&job->response),
                         .output = gc_cuda_kernel_rows(&job->output),
                         .sharing = gc_cuda_sharing(s),
                         .gain = job->gain,
                         .offset = s->offset,
                         .piece = (int)p->hop,
                         .pieces = (int)p->segments,
                         .leading = (int)p->lo,
                         .step = (int)p->launches,
                         .count = (int)p->tiles,
                         .grid = (unsigned)p->blocks,
                         .twiddles = gc_rows_twiddles(c->cuda, p),
                         .scratch = c->workspace};
    cudaError_t err = cudaSuccess;
    const gck_target target = {gc_cuda_kernel_rows(gc_job_written(job)), job->accumulate};
    const bool sums = has_sums(s, p);
    if (sums) {
        gck_rows *written = s->operation == GPUCONV_ARRAYS_CONVOLVE ? &j.output : &j.signal;
        *written = (gck_rows){.data = (char *)c->workspace + scratch_bytes(s, p),
                              .frames = target.rows.frames,
                              .stride = target.rows.frames,
                              .step = 1,
                              .sample = GCK_F32};
    }
    for (gck_ramp ramp = s->linear ? GCK_FALL : GCK_HOLD; ramp <= (s->linear ? GCK_RISE : GCK_HOLD); ramp++)
        for (int64_t part = 0; part < p->parts; part++) {
            j.blocks = gc_cuda_blocks(s, ramp);
            j.first_tap = part * p->part_taps;
            j.taps = (int)gc_min(p->part_taps, s->taps - j.first_tap);
            /* Each part of the gradient by the response is written by one part alone. */
            const bool written =
                s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE ? ramp == GCK_RISE : ramp == GCK_RISE || part;
            GC_CUDA_TRY(err, run_part(c, &j, (job->accumulate && !sums) || written, stream));
        }
    if (sums)
        GC_CUDA_TRY(err, gck_sum_parts(&target,
                                       (const float *)(const void *)((const char *)c->workspace + scratch_bytes(s, p)),
                                       1, s->rows, target.rows.frames, stream));
    return err;
}

const gc_cuda_rows gc_rows_varying = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 8, 1 << 15),
    .number = {[8] = 1, [9] = 2, [10] = 3, [11] = 4, [12] = 5, [13] = 6, [14] = 7, [15] = 8},
    .varying = true,
    .load = gck_varying_load,
    .query = gc_chip_query,
    .twiddles = gck_chip_twiddles,
    .plan = plan,
    .run = run,
};
