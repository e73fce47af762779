/*
 * Rows of halves or bfloat16 that share responses, as products with their Toeplitz matrices on tensor cores
 * (rows/toeplitz.cu): a convolution, and with the response read backwards the gradient by the signal. The time is that
 * of the products and of the samples that are read and written.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>

enum { SAMPLED = 64, BLOCKS_MAX = 1 << 30 };

/* A product on tensor cores, in multiply-adds of direct convolution, and the cycles of a block beside its products.
 * Measured on an H200 (docs/speed.md). */
static const double product_cost = 0.16, block_cycles = 3000;

/* The sums of a job as the kernel computes them. */
typedef struct sums {
    int64_t source_frames, frames, taps, shift;
    bool reflect;
} sums;

static sums sums_of(const gc_job_shape *s) {
    return s->operation == GPUCONV_ARRAYS_CONVOLVE
               ? (sums){s->signal_frames, s->output_frames, s->taps, s->offset, false}
               : (sums){s->output_frames, s->signal_frames, s->taps, -s->offset, true};
}

/* Returns the stages of the source that all warps of a row of blocks multiply, from some of them. */
static double stages_of(const sums *s, const gck_toeplitz_sizes *k) {
    const int64_t warps = gc_divide_up(s->frames, k->frames), tried = gc_min(warps, SAMPLED);
    const int64_t last_shift = s->shift + (s->reflect ? s->taps - 1 : 0);
    int64_t stages = 0;
    for (int64_t i = 0; i < tried; i++) {
        const int64_t begin = (2 * i + 1) * warps / (2 * tried) * k->frames + last_shift;
        const int64_t low = gc_max(0, begin - s->taps + 1), end = gc_min(s->source_frames, begin + k->frames);
        stages += end > low ? (end - 1) / k->stage - low / k->stage + 1 : 0;
    }
    return (double)stages * (double)warps / (double)tried;
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    const sums j = sums_of(s);
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    const int64_t longest = gc_max(gc_max(s->signal_frames, s->output_frames), llabs(s->offset) + s->taps);
    if (!device->tensor_cores || problem->rows.spectra || !s->halves ||
        s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE || s->routes.routes || s->taps > GCK_TOEPLITZ_TAPS ||
        longest > GCK_TOEPLITZ_LONGEST || gck_toeplitz_shared((int)s->taps) > device->shared_memory)
        return false;
    const gck_toeplitz_sizes k = gck_toeplitz_query();
    const gck_sharing sharing = gc_cuda_sharing(s);
    const int64_t units = sharing.responses * gc_divide_up(gc_rows_of_response(s), k.rows);
    p->parts = p->segments = p->splits = 1;
    p->hop = j.frames;
    p->groups = (int)gc_min(gc_divide_up(j.frames, k.frames), k.warps);
    p->tiles = gc_divide_up(j.frames, (int64_t)p->groups * k.frames);
    p->blocks = p->tiles * units;
    if (p->blocks >= BLOCKS_MAX)
        return false;
    const double products = (double)units * stages_of(&j, &k) * k.frames * k.stage * k.rows;
    const double samples = (double)s->rows * (double)(s->signal_frames + s->output_frames) / 2; /* of four bytes */
    const double rounds = (double)gc_divide_up(p->blocks, device->multiprocessors * k.resident);
    p->seconds = launch + products * product_cost * t[GC_COST_CUDA_TAP] + samples * t[GC_COST_CUDA_OUTPUT] +
                 rounds * block_cycles * t[GC_COST_CUDA_CYCLE];
    return true;
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const sums s = sums_of(&c->shape);
    const gck_toeplitz_job j = {.source = gc_cuda_kernel_rows(s.reflect ? &job->output : &job->signal),
                                .response = gc_cuda_kernel_rows(&job->response),
                                .target = {gc_cuda_kernel_rows(gc_job_written(job)), job->accumulate},
                                .sharing = gc_cuda_sharing(&c->shape),
                                .gain = job->gain,
                                .taps = (int)s.taps,
                                .shift = (int)s.shift,
                                .reflect = s.reflect,
                                .warps = c->plan.groups};
    return gck_toeplitz_convolve(&j, stream);
}

const gc_cuda_rows gc_rows_toeplitz = {.row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_DIRECT, "direct", 0, 0),
                                       .load = gck_toeplitz_load,
                                       .plan = plan,
                                       .run = run};
