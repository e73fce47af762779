/*
 * Rows by direct sums of responses of up to some hundred taps (rows/short.cu), one for each row or one for each block
 * of a filter that changes with time. A thread computes 16 frames in registers; the time is that of the multiply-adds,
 * or of the samples that are read and written.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { TAPS_MAX = 1024, ITEMS_MAX = 1 << 30, REGISTERS = 72 };

/* Of a multiply-add, in taps of direct convolution of long inputs; the taps that a frame's load and store take; and the
 * cycles of a tile's latency. Measured on an H200 (docs/speed.md). */
static const double tap_cost = 1.5, varying_tap_cost = 2.3, tile_taps = 36, tile_cycles = 3000;

/* Completes a plan with tiles of `threads` threads. */
static void plan_tiles(const gc_job_shape *s, const gc_device *device, const gc_costs *costs, int threads, int shared,
                       gc_rows_plan *p) {
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    const int64_t tile = (int64_t)threads * GCK_SHORT_OUTPUTS, tiles = gc_divide_up(s->output_frames + 7, tile);
    const int64_t held = device->resident_shared_memory / (shared + 1024);
    const int64_t resident = gc_max(1, gc_min(held, 65536 / REGISTERS / threads));
    const int64_t each = gc_divide_up(tiles * s->rows, device->multiprocessors);
    const double taps = gck_short_span((int)s->taps, (int)s->hop), passes = (double)(1 + s->linear);
    const double around = tile_taps * (1 + taps / (double)tile), cost = s->hop ? varying_tap_cost : tap_cost;
    const double sums = (double)(each * tile) * (taps * cost + around) * t[GC_COST_CUDA_TAP] * device->multiprocessors;
    const double samples =
        (double)(s->rows * s->output_frames) * 2 + (double)(s->responses * gc_max(1, s->blocks)) * taps;
    const double rounds = (double)gc_divide_up(each, resident);
    /* Few threads hide little of the latency. */
    const double busy = fmin(1, (double)(gc_min(each, resident) * threads) / 512);
    p->groups = threads;
    p->tiles = tiles;
    p->blocks = tiles * s->rows;
    p->seconds = passes * (launch + fmax(sums / busy, samples * t[GC_COST_CUDA_OUTPUT]) +
                           fmin(rounds, 2) * tile_cycles * t[GC_COST_CUDA_CYCLE]);
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *best) {
    const gc_job_shape *s = &problem->rows.shape;
    const int64_t longest = gc_max(gc_max(s->signal_frames, s->output_frames), llabs(s->offset));
    if (s->operation != GPUCONV_ARRAYS_CONVOLVE || s->routes.routes || s->taps > TAPS_MAX ||
        s->hop > GCK_SHORT_FRAMES || s->blocks > GCK_SHORT_FRAMES || longest > GC_JOB_FRAMES_MAX / 2)
        return false;
    gc_rows_plan fresh = *best;
    fresh.parts = fresh.segments = fresh.splits = 1;
    fresh.hop = s->output_frames;
    best->seconds = HUGE_VAL;
    for (int threads = 32; threads <= GCK_SHORT_THREADS; threads *= 2) {
        const int shared = gck_short_shared((int)s->taps, (int)s->hop, threads);
        gc_rows_plan p = fresh;
        if (shared > device->shared_memory)
            continue;
        plan_tiles(s, device, costs, threads, shared, &p);
        if (p.blocks < ITEMS_MAX && p.seconds < best->seconds)
            *best = p;
    }
    return best->seconds < HUGE_VAL;
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_job_shape *s = &c->shape;
    const gc_cuda_responses *kept = c->prepared;
    const gck_rows samples = {.data = kept ? kept->samples : NULL, .frames = s->taps, .stride = s->taps, .step = 1};
    gck_short_job j = {.source = gc_cuda_kernel_rows(&job->signal),
                       .response = kept ? samples : gc_cuda_kernel_rows(&job->response),
                       .target = {gc_cuda_kernel_rows(&job->output), job->accumulate},
                       .sharing = gc_cuda_sharing(s),
                       .gain = job->gain,
                       .offset = s->offset,
                       .taps = (int)s->taps,
                       .threads = c->plan.groups};
    cudaError_t err = cudaSuccess;
    for (gck_ramp ramp = s->linear ? GCK_FALL : GCK_HOLD; ramp <= (s->linear ? GCK_RISE : GCK_HOLD); ramp++) {
        j.blocks = gc_cuda_blocks(s, ramp);
        j.target.accumulate = job->accumulate || ramp == GCK_RISE;
        GC_CUDA_TRY(err, gck_short_convolve(&j, stream));
    }
    return err;
}

const gc_cuda_rows gc_rows_short = {.row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_DIRECT, "direct", 0, 0),
                                    .varying = true,
                                    .load = gck_short_load,
                                    .plan = plan,
                                    .run = run};
