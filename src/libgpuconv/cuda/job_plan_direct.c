/*
 * Plans of jobs by direct sums (job_direct.cu). A block computes a tile of a target row; the cycles of a multiprocessor
 * are
 *
 *      chunks of a block x (rounds of blocks x the latency of loading a chunk + blocks x multiply-adds of a chunk)
 *
 * The latency is why small jobs take this way: one load, one stretch of multiply-adds on every multiprocessor and one
 * exchange, where transforms are three in a chain on a few. 16 000 frames x 2000 taps on 132 multiprocessors: 144
 * frames of each, 2016 terms, 2270 cycles at 128 multiply-adds a cycle.
 */
#include "job_plan.h"

#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { SPLITS_MAX = 1024, REGISTERS = 80 };

static const double launch_seconds = 3e-6;
/* Measured on an H200 (docs/speed.md). Of a chunk: a load from memory and a barrier; of a block: start and store. */
static const double chunk_cycles = 1100, block_cycles = 900, share_of_lanes = 0.62, load_bytes_per_cycle = 32;
/* Of a unit of terms of a warp: four times 64 multiply-adds, 4 loads and a share of the loop. */
static const double unit_cycles = 288;

static int64_t divide_up(int64_t n, int64_t by) {
    return (n + by - 1) / by;
}

/* The sums of a job: `sums` rows of `frames` frames, each of `terms` terms of `rows` rows. */
typedef struct sums {
    bool gradient;
    int64_t sums, frames, terms, rows, source_frames;
} sums;

static sums sums_of(const gc_job_shape *s) {
    const bool gradient = s->operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE,
               convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    const int64_t responses = gc_min(s->responses, divide_up(s->rows, s->group));
    return (sums){.gradient = gradient,
                  .sums = gradient ? responses : s->rows,
                  .frames = gradient   ? s->taps
                            : convolve ? s->output_frames
                                       : s->signal_frames,
                  .terms = gradient ? s->signal_frames : s->taps,
                  .rows = gradient ? divide_up(s->rows, s->group * responses) * s->group : 1,
                  .source_frames = convolve ? s->signal_frames : s->output_frames};
}

/* Divides the threads of a block between frames and terms. */
static void divide_threads(gc_job_plan *p, int groups, int64_t chunk) {
    const int units = (int)divide_up(chunk, GCK_JOB_DIRECT_UNIT), most = GCK_JOB_DIRECT_THREADS / groups;
    p->each = (units + most - 1) / most;
    p->groups = groups;
    p->chunk = units * GCK_JOB_DIRECT_UNIT;
    p->term_parts = (units + p->each - 1) / p->each;
}

/* Completes a plan with tiles of `groups` groups, and predicts its seconds. */
static void plan_tiles(const gc_job_device *device, const sums *s, int groups, gc_job_plan *p) {
    const int64_t tile = (int64_t)groups * GCK_JOB_DIRECT_OUTPUTS, processors = device->multiprocessors;
    const int64_t terms = gc_min(s->terms, s->source_frames + tile); /* that meet the source */
    *p = (gc_job_plan){.transform = {GC_JOB_DIRECT, 0}, .parts = 1, .segments = 1, .splits = 1};
    p->tiles = divide_up(s->frames, tile);
    int64_t chunk = gc_min(terms, GCK_JOB_DIRECT_CHUNK), chunks = divide_up(terms, chunk);
    if (s->gradient) {
        /* Chunks that are as long as the share of a multiprocessor, or longer ones in turn. */
        const double share =
            (double)s->rows * (double)s->terms * (double)p->tiles * (double)s->sums / (double)processors;
        chunk = gc_min((int64_t)fmin(fmax(share, 256), GCK_JOB_DIRECT_CHUNK), s->terms);
        chunk = gc_round_up(chunk, GCK_JOB_DIRECT_UNIT);
        const int64_t all = s->rows * divide_up(s->terms, chunk);
        p->splits = gc_max(1, gc_min(gc_min(all, SPLITS_MAX), processors / (p->tiles * s->sums)));
        chunks = divide_up(all, p->splits);
        p->bytes = p->splits > 1 ? p->splits * s->sums * s->frames * (int64_t)sizeof(float) : 0;
    }
    divide_threads(p, groups, chunk);
    p->blocks = p->tiles * s->sums * p->splits;
    const int64_t resident = gc_max(1, gc_min(gc_min(device->threads, 65536 / REGISTERS) / GCK_JOB_DIRECT_THREADS,
                                              device->shared / (GCK_JOB_DIRECT_SHARED + 1024)));
    const double blocks = (double)divide_up(p->blocks, processors),
                 rounds = (double)divide_up((int64_t)blocks, resident);
    const double terms_of_block = (double)p->each * p->term_parts * GCK_JOB_DIRECT_UNIT;
    const double sums_cycles =
        fmax(blocks * (double)tile * terms_of_block / (share_of_lanes * device->lanes), rounds * p->each * unit_cycles);
    /* Loading is part of the latency until it takes longer. */
    const double load_cycles = blocks * (double)(tile + 2 * p->chunk) * sizeof(float) / load_bytes_per_cycle;
    p->seconds = launch_seconds +
                 ((double)chunks * (fmax(rounds * chunk_cycles, load_cycles) + load_cycles / 8 + sums_cycles) +
                  rounds * block_cycles) /
                     device->clock +
                 (p->splits > 1 ? launch_seconds + (double)p->bytes * 2 / device->bandwidth : 0);
}

bool gc_job_plan_direct(const gc_job_device *device, const gc_job_shape *shape, gc_job_plan *plan) {
    const sums s = sums_of(shape);
    const int64_t longest = gc_max(gc_max(shape->signal_frames, shape->output_frames), shape->taps);
    if (shape->routes.routes || s.sums > GCK_JOB_DIRECT_GRID ||
        gc_max(longest, llabs(shape->offset)) > GCK_JOB_DIRECT_FRAMES)
        return false;
    bool found = false;
    /* As many tiles as multiprocessors, and other sizes. */
    const int64_t share = divide_up(divide_up(s.sums * s.frames, device->multiprocessors), GCK_JOB_DIRECT_OUTPUTS);
    for (int groups = 2; groups <= 2 * GCK_JOB_DIRECT_GROUPS; groups *= 2) {
        gc_job_plan p;
        const int64_t most = groups > GCK_JOB_DIRECT_GROUPS ? gc_max(1, gc_min(share, GCK_JOB_DIRECT_GROUPS)) : groups;
        const int64_t tiles = divide_up(s.frames, most * GCK_JOB_DIRECT_OUTPUTS);
        plan_tiles(device, &s, (int)divide_up(divide_up(s.frames, tiles), GCK_JOB_DIRECT_OUTPUTS), &p);
        if (!found || p.seconds < plan->seconds)
            *plan = p;
        found = true;
    }
    return true;
}
