/*
 * Rows by direct sums (rows/direct.cu). A block computes a tile of a target row; the cycles of a multiprocessor
 * are
 *
 *      chunks of a block x (rounds of blocks x the latency of loading a chunk + blocks x multiply-adds of a chunk)
 *
 * The latency is why small jobs take this way: one load, one stretch of multiply-adds on every multiprocessor and one
 * exchange, where transforms are three in a chain on a few. 16 000 frames x 2000 taps on 132 multiprocessors: 144
 * frames of each, 2016 terms, 2270 cycles at 128 multiply-adds a cycle.
 */
#include "cuda_arrays.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { SPLITS_MAX = 1024, REGISTERS = 80 };

/* Measured on an H200 (docs/speed.md). Of a chunk: a load from memory and a barrier; of a block: start and store. */
static const double chunk_cycles = 1100, block_cycles = 900, load_bytes_per_cycle = 32;
/* Of a unit of terms of a warp: four times 64 multiply-adds, 4 loads and a share of the loop. */
static const double unit_cycles = 288;
/* Of a multiply-add, in taps of direct convolution of long inputs. */
static const double tap_cost = 1.4;

/* The sums of a job: `sums` rows of `frames` frames, each of `terms` terms of `rows` rows. */
typedef struct sums {
    bool gradient;
    int64_t sums, frames, terms, rows, source_frames;
} sums;

static sums sums_of(const gc_job_shape *s) {
    const bool gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE,
               convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    const int64_t responses = gc_min(s->responses, gc_divide_up(s->rows, s->group));
    return (sums){.gradient = gradient,
                  .sums = gradient ? responses : s->rows,
                  .frames = gradient   ? s->taps
                            : convolve ? s->output_frames
                                       : s->signal_frames,
                  .terms = gradient ? s->signal_frames : s->taps,
                  .rows = gradient ? gc_rows_of_response(s) : 1,
                  .source_frames = convolve ? s->signal_frames : s->output_frames};
}

/* Divides the threads of a block between frames and terms. */
static void divide_threads(gc_rows_plan *p, int groups, int64_t chunk) {
    const int units = (int)gc_divide_up(chunk, GCK_JOB_DIRECT_UNIT), most = GCK_JOB_DIRECT_THREADS / groups;
    p->each = gc_divide_up(units, most);
    p->groups = groups;
    p->chunk = units * GCK_JOB_DIRECT_UNIT;
    p->term_parts = gc_divide_up(units, p->each);
}

/* Completes a plan with tiles of `groups` groups, and predicts its seconds. */
static void plan_tiles(const gc_device *device, const gc_costs *costs, const sums *s, int groups, gc_rows_plan *p) {
    const double *t = costs->seconds, launch = GC_ROWS_LAUNCH * t[GC_COST_CUDA_LAUNCH];
    const int64_t tile = (int64_t)groups * GCK_JOB_DIRECT_OUTPUTS, processors = device->multiprocessors;
    const int64_t terms = gc_min(s->terms, s->source_frames + tile); /* that meet the source */
    *p = (gc_rows_plan){.algorithm = &gc_rows_direct, .parts = 1, .segments = 1, .splits = 1};
    p->tiles = gc_divide_up(s->frames, tile);
    int64_t chunk = gc_min(terms, GCK_JOB_DIRECT_CHUNK), chunks = gc_divide_up(terms, chunk);
    if (s->gradient) {
        /* Chunks that are as long as the share of a multiprocessor, or longer ones in turn. */
        const double share =
            (double)s->rows * (double)s->terms * (double)p->tiles * (double)s->sums / (double)processors;
        chunk = gc_min((int64_t)fmin(fmax(share, 256), GCK_JOB_DIRECT_CHUNK), s->terms);
        chunk = gc_round_up(chunk, GCK_JOB_DIRECT_UNIT);
        const int64_t all = s->rows * gc_divide_up(s->terms, chunk);
        p->splits = gc_max(1, gc_min(gc_min(all, SPLITS_MAX), processors / (p->tiles * s->sums)));
        chunks = gc_divide_up(all, p->splits);
        p->bytes = p->splits > 1 ? p->splits * s->sums * s->frames * (int64_t)sizeof(float) : 0;
    }
    divide_threads(p, groups, chunk);
    p->blocks = p->tiles * s->sums * p->splits;
    const int64_t resident =
        gc_max(1, gc_min(gc_min(device->resident_threads, 65536 / REGISTERS) / GCK_JOB_DIRECT_THREADS,
                         device->resident_shared_memory / (GCK_JOB_DIRECT_SHARED + 1024)));
    const double blocks = (double)gc_divide_up(p->blocks, processors),
                 rounds = (double)gc_divide_up((int64_t)blocks, resident);
    const double terms_of_block = (double)p->each * p->term_parts * GCK_JOB_DIRECT_UNIT;
    const double sums_seconds =
        fmax(blocks * (double)tile * terms_of_block * tap_cost * t[GC_COST_CUDA_TAP] * (double)processors,
             rounds * p->each * unit_cycles * t[GC_COST_CUDA_CYCLE]);
    /* Loading is part of the latency until it takes longer. */
    const double load_cycles = blocks * (double)(tile + 2 * p->chunk) * sizeof(float) / load_bytes_per_cycle;
    const double chunk_seconds =
        (fmax(rounds * chunk_cycles, load_cycles) + load_cycles / 8) * t[GC_COST_CUDA_CYCLE] + sums_seconds;
    p->seconds = launch + (double)chunks * chunk_seconds + rounds * block_cycles * t[GC_COST_CUDA_CYCLE] +
                 (p->splits > 1 ? launch + (double)p->bytes / 2 * t[GC_COST_CUDA_OUTPUT] : 0);
}

static bool plan(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_rows_plan *best) {
    const gc_job_shape *shape = &problem->rows.shape;
    const sums s = sums_of(shape);
    const int64_t longest = gc_max(gc_max(shape->signal_frames, shape->output_frames), shape->taps);
    if (shape->routes.routes || s.sums > GCK_JOB_DIRECT_GRID ||
        gc_max(longest, llabs(shape->offset)) > GCK_JOB_DIRECT_FRAMES)
        return false;
    best->seconds = HUGE_VAL;
    /* As many tiles as multiprocessors, and other sizes. */
    const int64_t share =
        gc_divide_up(gc_divide_up(s.sums * s.frames, device->multiprocessors), GCK_JOB_DIRECT_OUTPUTS);
    for (int groups = 2; groups <= 2 * GCK_JOB_DIRECT_GROUPS; groups *= 2) {
        gc_rows_plan p;
        const int64_t most = groups > GCK_JOB_DIRECT_GROUPS ? gc_max(1, gc_min(share, GCK_JOB_DIRECT_GROUPS)) : groups;
        const int64_t tiles = gc_divide_up(s.frames, most * GCK_JOB_DIRECT_OUTPUTS);
        plan_tiles(device, costs, &s, (int)gc_divide_up(gc_divide_up(s.frames, tiles), GCK_JOB_DIRECT_OUTPUTS), &p);
        if (p.seconds < best->seconds)
            *best = p;
    }
    return true;
}

static cudaError_t load(int shared_bytes_max) {
    (void)shared_bytes_max; /* any device has the shared memory */
    return gck_job_direct_load();
}

static cudaError_t run(const gc_cuda_call *c, cudaStream_t stream) {
    const gpuconv_arrays_job *job = c->job;
    const gc_job_shape *s = &c->shape;
    const gc_rows_plan *p = &c->plan;
    const bool convolve = job->operation == GPUCONV_ARRAYS_CONVOLVE,
               by_response = job->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    const gc_cuda_responses *kept = by_response ? NULL : c->prepared;
    const gck_rows samples = {.data = kept ? kept->samples : NULL, .frames = s->taps, .stride = s->taps, .step = 1};
    const gck_job_direct d = {.source = gc_cuda_kernel_rows(convolve ? &job->signal : &job->output),
                              .factor =
                                  kept ? samples : gc_cuda_kernel_rows(by_response ? &job->signal : &job->response),
                              .target = {gc_cuda_kernel_rows(gc_job_written(job)), job->accumulate},
                              .sharing = gc_cuda_sharing(s),
                              .gain = job->gain,
                              .terms = (int)(by_response ? s->signal_frames : s->taps),
                              .shift = (int)(convolve ? s->offset : -s->offset),
                              .reverse = convolve,
                              .groups = p->groups,
                              .parts = p->term_parts,
                              .chunk = p->chunk,
                              .each = p->each,
                              .tiles = (int)p->tiles,
                              .splits = (int)p->splits,
                              .partial = c->workspace};
    return by_response ? gck_job_direct_gradient(&d, stream) : gck_job_direct_convolve(&d, stream);
}

const gc_cuda_rows gc_rows_direct = {.row = GC_ROWS_ENTRY(GPUCONV_ALGORITHM_DIRECT, "direct", 0, 0),
                                     .stepped = true,
                                     .load = load,
                                     .plan = plan,
                                     .run = run};
