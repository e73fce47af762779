/*
 * Rows of halves by transforms on tensor cores (rows/tensor.cu): a convolution whose output lies within the first N
 * frames, and the gradient by the signal. A block computes several rows of a response at a time, two blocks share a
 * multiprocessor. The time is that of
 *
 *      rounds of blocks x the time of a block
 *
 * whether all rows of a block exist or not, and of a launch before that transforms the responses.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

enum { BLOCKS_MAX = 1 << 30, RESIDENT = 2 };

/* Cycles of a block with its rows, beside another block, measured on an H200 (docs/experiments/jobs.md); and those of a
 * multiprocessor for a response, by the count of instructions. */
static const struct { double block, response; } sizes[GCK_TENSOR_SIZES] = {{18700, 4500}, {20700, 9500}};

static gc_rows_kernels query(int size) {
    const gck_tensor_sizes s = gck_tensor_query(size);
    return (gc_rows_kernels){s.twiddles, s.shared_bytes};
}

/* Sets what a row reads and writes. Returns whether points 0 ... N - 1 suffice: the result of a product is right in
 * these, and depends on no point behind them if it is a convolution. */
static bool place_rows(const gc_job_shape *s, gc_rows_plan *p) {
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    p->parts = p->segments = p->splits = 1;
    p->hop = convolve ? s->output_frames : s->signal_frames;
    p->lo = convolve ? gc_max(s->offset, 0) : 0;
    p->shift = convolve ? gc_min(s->offset, 0) : -s->offset;
    const int64_t reached = gc_min(s->output_frames + s->offset, s->signal_frames + s->taps - 1);
    return p->lo + p->hop <= p->points && (convolve || reached <= p->points);
}

/* Returns the most blocks of rows that share a response. */
static int64_t blocks_of_response(const gc_job_shape *s, int size) {
    return gc_divide_up(gc_rows_of_response(s), gck_tensor_query(size).rows);
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *p) {
    const gc_job_shape *s = &problem->rows.shape;
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    if (!device->tensor_cores || !s->bare_halves || problem->rows.spectra || s->routes.routes ||
        (s->operation != GPUCONV_ARRAYS_CONVOLVE && s->operation != GPUCONV_ARRAYS_GRADIENT_SIGNAL) ||
        !place_rows(s, p))
        return false;
    const int64_t responses = gc_cuda_sharing(s).responses, bytes = query(p->size).shared_bytes + 1024;
    const int64_t resident = gc_max(1, gc_min(RESIDENT, device->resident_shared_memory / bytes));
    const int64_t items = responses * blocks_of_response(s, p->size), slots = device->multiprocessors * resident;
    if (items >= BLOCKS_MAX)
        return false;
    p->blocks = gc_min(items, slots);
    p->response_transforms = responses;
    p->bytes = responses * (p->points * (int64_t)sizeof(float2) + (int64_t)sizeof(float));
    const double samples = (double)s->rows * (double)(s->signal_frames + s->output_frames) / 2; /* of four bytes */
    const double rounds = (double)gc_divide_up(items, slots),
                 turns = (double)gc_divide_up(responses, device->multiprocessors);
    p->seconds = 2 * launch + turns * sizes[p->size].response * t[GC_COST_CUDA_CYCLE] +
                 fmax(rounds * sizes[p->size].block * t[GC_COST_CUDA_CYCLE], samples * t[GC_COST_CUDA_OUTPUT]);
    return p->bytes <= device->workspace;
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_rows_plan *p = &c->plan;
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE;
    const gck_rows response = gc_cuda_kernel_rows(&job->response);
    float2 *spectra = c->workspace;
    const gck_tensor_job k = {.source = gc_cuda_kernel_rows(convolve ? &job->signal : &job->output),
                              .target = gc_cuda_kernel_rows(gc_job_written(job)),
                              .sharing = gc_cuda_sharing(&c->shape),
                              .spectra = spectra,
                              .scales = (float *)(spectra + p->response_transforms * p->points),
                              .shift = p->shift,
                              .lo = (int)p->lo,
                              .reflect = !convolve,
                              .per_response = (int)blocks_of_response(&c->shape, p->size),
                              .blocks = (unsigned)p->blocks,
                              .twiddles = gc_rows_twiddles(c->cuda, p)};
    return gck_tensor_convolve(p->size, &k, &response, c->shape.taps, stream);
}

const gc_cuda_rows gc_rows_tensor = {
    .row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", 1 << 12, 1 << 13),
    .number = {[12] = 1, [13] = 2},
    .table = GCK_CHIP_SIZES + GCK_3PASS_SIZES,
    .load = gck_tensor_load,
    .query = query,
    .twiddles = gck_tensor_twiddles,
    .plan = plan,
    .run = run,
};
