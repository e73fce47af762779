/*
 * Uniformly partitioned convolution on all cores. Each input block (one hop and the hop before it) is transformed once
 * and its spectrum is kept in a frequency-domain delay line. Output block t is the inverse FFT of the sum over p of H_p
 * X_(t-p).
 *
 * A chunk is computed in three passes: forward FFTs of its blocks; sums of products; inverse FFTs. The second pass goes
 * slab by slab over the bins, and within a slab over all blocks, so that the slabs of the response and of the delay
 * line stay in the cache.
 *
 *      delay line  | t-P+1 ... t-1 | blocks of the chunk |    per input: a ring of P - 1 + blocks spectra
 */
#include "cpu_algorithm.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB = 1024 }; /* floats: slabs of a few hundred partitions fill half of a second-level cache */

struct gc_convolver {
    const gpuconv_ir *ir;
    gc_fft *fft;
    int64_t hop, stride, partitions; /* stride: floats per spectrum */
    int64_t blocks;                  /* in a full chunk */
    int64_t ring;                    /* spectra in the delay line of an input */
    int64_t first_block;             /* number of the chunk's first block since the reset */
    float *spectra;                  /* planes x partitions, scaled by 1 / hop */
    float *delay;                    /* inputs x ring */
    float *sums;                     /* outputs x blocks */
    float *blocks_of_taps;           /* per worker: a block; only during the set-up */
    const float **lists;             /* per worker: two lists of spectra, the factors of a sum of products */
    int64_t list_length;             /* routes x partitions */
    int workers;
    float *const *in;
    float *const *out;
    int64_t frames, active; /* active: blocks of this chunk with output */
};

static void free_partitioned(gc_convolver *c) {
    if (!c)
        return;
    gc_fft_free(c->fft);
    free(c->spectra);
    free(c->delay);
    free(c->sums);
    free(c->lists);
    free(c->blocks_of_taps);
    free(c);
}

/* Transforms the partitions of one plane of the response, each followed by a hop of zeros. */
static void transform_plane(void *context, int64_t plane, int worker) {
    gc_convolver *c = context;
    float *block = c->blocks_of_taps + worker * 2 * c->hop;
    for (int64_t p = 0; p < c->partitions && !gc_cancelled(); p++) {
        int64_t n = gc_min(c->hop, c->ir->frames - p * c->hop);
        memset(block, 0, (size_t)c->hop * sizeof(float));
        for (int64_t i = 0; i < n; i++)
            block[i] = gc_ir_plane(c->ir, (int)plane)[p * c->hop + i] / (float)c->hop;
        gc_fft_forward(c->fft, block, c->spectra + (plane * c->partitions + p) * c->stride);
    }
}

static gc_convolver *new_partitioned(const gpuconv_plan *plan, gc_pool *pool) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->hop = plan->choice.schedule.hop;
    c->partitions = plan->choice.schedule.partitions;
    c->blocks = plan->choice.chunk / c->hop;
    c->ring = c->partitions - 1 + c->blocks;
    c->workers = plan->device.threads;
    c->list_length = c->partitions * c->ir->routes;
    c->fft = gc_fft_new(gc_simd_best(), 2 * c->hop);
    bool made = c->fft != NULL;
    if (made) {
        c->stride = gc_fft_floats(c->fft);
        int64_t bytes = c->stride * (int64_t)sizeof(float);
        c->spectra = gc_calloc(c->ir->planes * c->partitions, bytes);
        c->delay = gc_calloc(c->ir->inputs * c->ring, bytes);
        c->sums = gc_calloc(c->ir->outputs * c->blocks, bytes);
        c->lists = gc_calloc(c->workers * 2 * c->list_length, sizeof *c->lists);
        c->blocks_of_taps = gc_calloc(c->workers, 2 * c->hop * (int64_t)sizeof(float));
        made = c->spectra && c->delay && c->sums && c->lists && c->blocks_of_taps;
    }
    if (made) {
        gc_pool_run(pool, transform_plane, c, c->ir->planes);
        free(c->blocks_of_taps);
        c->blocks_of_taps = NULL;
        made = !gc_cancelled();
    }
    if (!made) {
        free_partitioned(c);
        return NULL;
    }
    return c;
}

/* Returns the delay line's spectrum of an input block. */
static float *delayed_spectrum(const gc_convolver *c, int input, int64_t block) {
    return c->delay + (input * c->ring + block % c->ring) * c->stride;
}

/* Transforms one input block into the delay line. */
static void forward(void *context, int64_t index, int worker) {
    (void)worker;
    gc_convolver *c = context;
    int input = (int)(index / c->active);
    int64_t t = index % c->active;
    gc_fft_forward(c->fft, c->in[input] + (t - 1) * c->hop, delayed_spectrum(c, input, c->first_block + t));
}

static int64_t slab_count(const gc_convolver *c) {
    return (c->stride + SLAB - 1) / SLAB;
}

/* Sums the products of one slab of one output, for all blocks of the chunk. */
static void sum_slab(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    int output = (int)(index / slab_count(c));
    int64_t first = index % slab_count(c) * SLAB, n = gc_min(SLAB, c->stride - first);
    const float **x = c->lists + worker * 2 * c->list_length, **h = x + c->list_length;
    for (int64_t t = 0; t < c->active && !gc_cancelled(); t++) {
        int64_t count = 0, partitions = gc_min(c->partitions, c->first_block + t + 1);
        for (int r = 0; r < c->ir->routes; r++) {
            const gc_route *route = &c->ir->route[r];
            if (route->output != output)
                continue;
            for (int64_t p = 0; p < partitions; p++, count++) {
                x[count] = delayed_spectrum(c, route->input, c->first_block + t - p) + first;
                h[count] = c->spectra + (route->plane * c->partitions + p) * c->stride + first;
            }
        }
        gc_fft_multiply_sum(c->fft, c->sums + (output * c->blocks + t) * c->stride + first, x, h, count, n);
    }
}

/* Transforms one output block back into the chunk. */
static void backward(void *context, int64_t index, int worker) {
    (void)worker;
    gc_convolver *c = context;
    int output = (int)(index / c->active);
    int64_t t = index % c->active;
    gc_fft_inverse(c->fft, NULL, NULL, 0, c->sums + (output * c->blocks + t) * c->stride, c->out[output] + t * c->hop,
                   c->hop);
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->frames = frames;
    c->active = (frames + c->hop - 1) / c->hop;
    gc_pool_run(pool, forward, c, c->ir->inputs * c->active);
    gc_pool_run(pool, sum_slab, c, c->ir->outputs * slab_count(c));
    gc_pool_run(pool, backward, c, c->ir->outputs * c->active);
    c->first_block += c->active;
}

static void reset(gc_convolver *c) {
    c->first_block = 0; /* block numbers start at 0 again; older spectra are not read */
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    (void)p;
    (void)threads;
    return 16 * s->hop;
}

/* Spectra are read from memory if the slabs that one output needs exceed the second-level cache. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    (void)chunk;
    const double second_level = 1.5e6, slab = 4 * SLAB;
    const double streamed = 2 * slab * (double)s->partitions * p->ir->routes / p->ir->outputs > second_level;
    const double blocks = ceil(total / (double)s->hop), fft = gc_cpu_fft_seconds(c, s->transform);
    const double block = (p->ir->inputs + p->ir->outputs) * fft + gc_cpu_product_seconds(p, c, s, streamed);
    return blocks * block + gc_cpu_copy_seconds(p, c, total) + (double)(p->ir->planes * s->partitions) * fft;
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    (void)threads;
    const double spectrum = (double)s->transform, partitions = (double)s->partitions;
    return (p->ir->planes + p->ir->inputs) * partitions * spectrum +
           (p->ir->inputs + p->ir->outputs) * (double)chunk * 2 + p->ir->inputs * (double)gc_schedule_history(s);
}

const gc_cpu_algorithm gc_cpu_partitioned = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GC_FFT_MIN_POINTS, 1 << 24, GC_CPU_THRIFT,
                      GC_CPU_EXCESS),
    .schedule = gc_schedule_partitioned,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .new = new_partitioned,
    .run = run,
    .reset = reset,
    .free = free_partitioned,
};
