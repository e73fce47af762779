/*
 * Overlap-save convolution on all cores.
 *
 * A job is one block of one component. A component is a set of inputs and outputs that routes connect: a stereo
 * response has two components with one channel each, true stereo has one component with two. A job transforms each
 * input and each output of its component once; blocks are read from and written to the chunk in place.
 */
#include "cpu_algorithm.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/engine/components.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gc_convolver {
    const gpuconv_ir *ir;
    gc_fft *fft;
    int64_t points, hop, stride; /* stride: floats per spectrum */
    float *spectra;              /* per plane of the response, scaled by 2 / points */
    gc_components components;
    int max_spectra;
    int workers;
    float *scratch;        /* per worker: max_spectra spectra */
    float *blocks_of_taps; /* per worker: a block; only during the set-up */
    const float **lists;   /* per worker: two lists of `routes` spectra, the factors of a sum of products */
    float *const *in;
    float *const *out;
    int64_t blocks;
};

static void free_overlap_save(gc_convolver *c) {
    if (!c)
        return;
    gc_fft_free(c->fft);
    free(c->spectra);
    gc_components_free(&c->components);
    free(c->scratch);
    free(c->lists);
    free(c->blocks_of_taps);
    free(c);
}

/* Returns the most spectra that a job of any component holds: those of the inputs, and of a sum for several outputs. */
static int most_spectra(const gc_components *parts) {
    int most = 0;
    for (int i = 0; i < parts->count; i++)
        most = (int)gc_max(most, parts->component[i].inputs + (parts->component[i].outputs > 1));
    return most;
}

/* Transforms one plane of the response. */
static void transform_plane(void *context, int64_t plane, int worker) {
    gc_convolver *c = context;
    float *block = c->blocks_of_taps + worker * c->points;
    for (int64_t k = 0; k < c->ir->frames; k++)
        block[k] = gc_ir_plane(c->ir, (int)plane)[k] * 2 / (float)c->points;
    memset(block + c->ir->frames, 0, (size_t)(c->points - c->ir->frames) * sizeof *block);
    gc_fft_forward(c->fft, block, c->spectra + plane * c->stride);
}

static gc_convolver *new_overlap_save(const gpuconv_plan *plan, gc_pool *pool) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->points = plan->choice.schedule.transform;
    c->hop = plan->choice.schedule.hop;
    c->fft = gc_fft_new(gc_simd_best(), c->points);
    bool made = c->fft && gc_components_find(c->ir, &c->components);
    if (made) {
        c->max_spectra = most_spectra(&c->components);
        /* Scratch memory only for as many workers as a chunk has jobs. */
        c->workers = (int)gc_max(1, gc_min(plan->device.threads, plan->choice.chunk / c->hop * c->components.count));
        c->stride = gc_fft_floats(c->fft);
        c->spectra = gc_calloc(c->ir->planes, c->stride * (int64_t)sizeof(float));
        c->scratch = gc_calloc((int64_t)c->workers * c->max_spectra, c->stride * (int64_t)sizeof(float));
        c->lists = gc_calloc((int64_t)c->workers * 2 * c->ir->routes, sizeof *c->lists);
        c->blocks_of_taps = gc_calloc(c->workers, c->points * (int64_t)sizeof(float));
        made = c->spectra && c->scratch && c->lists && c->blocks_of_taps;
    }
    if (made) {
        gc_pool_run_on(pool, c->workers, transform_plane, c, c->ir->planes);
        free(c->blocks_of_taps);
        c->blocks_of_taps = NULL;
        made = !gc_cancelled();
    }
    if (!made) {
        free_overlap_save(c);
        return NULL;
    }
    return c;
}

/* Lists the routes into an output: the spectra of their inputs in x, of their planes in h. Returns their number. */
static int64_t list_factors(const gc_convolver *c, int output, const float *scratch, const float **x, const float **h) {
    const int first = c->components.first_route[output], end = c->components.first_route[output + 1];
    for (int r = first; r < end; r++) {
        x[r - first] = scratch + c->components.input_at[c->ir->route[r].input] * c->stride;
        h[r - first] = c->spectra + c->ir->route[r].plane * c->stride;
    }
    return end - first;
}

static void compute_block(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_component *part = &c->components.component[index / c->blocks];
    int64_t first = index % c->blocks * c->hop, before = c->points - c->hop;
    float *scratch = c->scratch + (int64_t)worker * c->max_spectra * c->stride;
    float *sum = scratch + (part->outputs > 1 ? part->inputs : 0) *
                               c->stride; /* one output: the sum replaces an input's spectrum */
    const float **x = c->lists + (int64_t)worker * 2 * c->ir->routes, **h = x + c->ir->routes;
    for (int i = 0; i < part->inputs && !gc_cancelled(); i++)
        gc_fft_forward(c->fft, c->in[part->input[i]] + first - before, scratch + i * c->stride);
    for (int o = 0; o < part->outputs && !gc_cancelled(); o++) {
        float *y = c->out[part->output[o]] + first;
        int64_t count = list_factors(c, part->output[o], scratch, x, h);
        gc_fft_inverse(c->fft, x, h, count, sum, y, before);
    }
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->blocks = (frames + c->hop - 1) / c->hop;
    gc_pool_run_on(pool, c->workers, compute_block, c, c->blocks * c->components.count);
    for (int o = 0; o < c->ir->outputs; o++)
        if (c->components.output_owner[o] < 0)
            memset(out[o], 0, (size_t)(c->blocks * c->hop) * sizeof **out);
}

static void reset(gc_convolver *c) {
    (void)c; /* keeps no state between chunks */
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

/* A chunk has a block for each thread. */
static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    const int64_t least = gc_min(p->ir->inputs, p->ir->outputs);
    return s->hop * ((threads + least - 1) / least);
}

/* Spectra of responses that exceed the caches are read for each block: the more of them the more they exceed the share
 * of the last level that is left to them. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    (void)chunk;
    const double kept = 8e6, last_level = 32e6, bins = (double)s->transform / 2;
    const double streamed = fmin(1, fmax(0, 8 * bins * p->ir->planes - kept) / (last_level - kept));
    const double blocks = ceil(total / (double)s->hop), fft = gc_cpu_fft_seconds(c, s->transform);
    const double block = (p->ir->inputs + p->ir->outputs) * fft + gc_cpu_product_seconds(p, c, s, streamed);
    return blocks * block + gc_cpu_copy_seconds(p, c, total) + p->ir->planes * fft;
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    const int64_t blocks = chunk / s->hop * p->components.count;
    const double block = (double)s->transform, workers = fmin(threads, (double)blocks);
    return p->ir->planes * block + workers * block * (1 + most_spectra(&p->components)) +
           p->ir->inputs * (double)gc_schedule_history(s);
}

const gc_cpu_algorithm gc_cpu_overlap_save = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_OVERLAP_SAVE, "overlap-save", GC_FFT_MIN_POINTS, 1 << 24, GC_CPU_THRIFT,
                      GC_CPU_EXCESS),
    .schedule = gc_schedule_overlap_save,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .new = new_overlap_save,
    .run = run,
    .reset = reset,
    .free = free_overlap_save,
};
