/*
 * Overlap-save on all cores.
 *
 * A job is one block of one island, an island being the inputs and outputs that routes connect: a stereo response makes
 * two islands of one channel each, true stereo one of two. Inside a job every input is transformed once and every
 * output once; blocks are read from and written to the chunk in place.
 */
#include "cpu_convolver.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <stdlib.h>
#include <string.h>

typedef struct island {
    int inputs, outputs;
    int *input, *output;
} island;

struct gc_convolver {
    const gpuconv_ir *ir;
    gc_fft *fft;
    int64_t points, hop, stride; /* stride: floats of a spectrum */
    float *spectra;              /* a plane: its spectrum, scaled by 2 / points */
    int islands;
    island *island;
    int *members; /* what the islands point into */
    int most;     /* spectra of the largest island: its inputs', and one more for a sum unless it has one output */
    int workers;
    float *scratch;      /* a worker: `most` spectra */
    const float **lists; /* a worker: two lists of a product's factors, `routes` long */
    float *const *in;
    float *const *out;
    int64_t blocks;
};

static void free_overlap_save(gc_convolver *c) {
    if (!c)
        return;
    gc_fft_free(c->fft);
    free(c->spectra);
    free(c->island);
    free(c->members);
    free(c->scratch);
    free(c->lists);
    free(c);
}

/* Gathers inputs and outputs into islands by spreading the lowest mark along the routes until nothing changes. */
static bool find_islands(gc_convolver *c) {
    const gpuconv_ir *ir = c->ir;
    int nodes = ir->inputs + ir->outputs, used = 0;
    int *mark = gc_calloc(nodes, sizeof *mark);
    c->island = gc_calloc(nodes, sizeof *c->island);
    c->members = gc_calloc(nodes, sizeof *c->members);
    if (!mark || !c->island || !c->members) {
        free(mark);
        return false;
    }
    for (int i = 0; i < nodes; i++)
        mark[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = 0; r < ir->routes; r++) {
            int *a = &mark[ir->route[r].input], *b = &mark[ir->inputs + ir->route[r].output];
            if (*a != *b) {
                *a = *b = *a < *b ? *a : *b;
                changed = true;
            }
        }
    }
    for (int m = 0; m < nodes; m++) {
        island *l = &c->island[c->islands];
        *l = (island){.input = c->members + used};
        for (int i = 0; i < ir->inputs; i++)
            if (mark[i] == m)
                l->input[l->inputs++] = i;
        l->output = l->input + l->inputs;
        for (int o = 0; o < ir->outputs; o++)
            if (mark[ir->inputs + o] == m)
                l->output[l->outputs++] = o;
        used += l->inputs + l->outputs;
        int spectra = l->inputs + (l->outputs > 1);
        c->most = spectra > c->most ? spectra : c->most;
        c->islands += l->outputs > 0; /* an input that goes nowhere is no work; an output from nowhere is silence */
    }
    free(mark);
    return true;
}

static bool transform_response(gc_convolver *c) {
    float *block = gc_calloc(c->points, sizeof *block);
    for (int p = 0; block && p < c->ir->planes && !gc_cancelled(); p++) {
        for (int64_t k = 0; k < c->ir->frames; k++)
            block[k] = gc_ir_plane(c->ir, p)[k] * 2 / (float)c->points;
        gc_fft_forward(c->fft, block, c->spectra + p * c->stride);
    }
    free(block);
    return block && !gc_cancelled();
}

static gc_convolver *new_overlap_save(const gpuconv_plan *plan) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->points = plan->schedule.transform;
    c->hop = plan->schedule.hop;
    c->fft = gc_fft_new(gc_simd_best(), c->points);
    bool made = c->fft && find_islands(c);
    if (made) {
        /* No more scratch than a chunk has jobs for. */
        c->workers = (int)gc_max(1, gc_min(plan->device.threads, plan->chunk / c->hop * c->islands));
        c->stride = gc_fft_floats(c->fft);
        c->spectra = gc_calloc(c->ir->planes, c->stride * (int64_t)sizeof(float));
        c->scratch = gc_calloc((int64_t)c->workers * c->most, c->stride * (int64_t)sizeof(float));
        c->lists = gc_calloc((int64_t)c->workers * 2 * c->ir->routes, sizeof *c->lists);
        made = c->spectra && c->scratch && c->lists && transform_response(c);
    }
    if (!made) {
        free_overlap_save(c);
        return NULL;
    }
    return c;
}

/* The routes into an output: their inputs' spectra in x, their planes' in h. */
static int64_t factors(const gc_convolver *c, const island *l, int output, const float *scratch, const float **x,
                       const float **h) {
    int64_t count = 0;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        if (route->output != output)
            continue;
        int i = 0;
        while (l->input[i] != route->input)
            i++;
        x[count] = scratch + i * c->stride;
        h[count++] = c->spectra + route->plane * c->stride;
    }
    return count;
}

static void job(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const island *l = &c->island[index / c->blocks];
    int64_t first = index % c->blocks * c->hop, before = c->points - c->hop;
    float *scratch = c->scratch + (int64_t)worker * c->most * c->stride;
    float *sum = scratch + (l->outputs > 1 ? l->inputs : 0) * c->stride; /* one output: in place of an input */
    const float **x = c->lists + (int64_t)worker * 2 * c->ir->routes, **h = x + c->ir->routes;
    for (int i = 0; i < l->inputs && !gc_cancelled(); i++)
        gc_fft_forward(c->fft, c->in[l->input[i]] + first - before, scratch + i * c->stride);
    for (int o = 0; o < l->outputs && !gc_cancelled(); o++) {
        float *y = c->out[l->output[o]] + first;
        int64_t count = factors(c, l, l->output[o], scratch, x, h);
        if (count)
            gc_fft_inverse(c->fft, x, h, count, sum, y, before);
        else
            memset(y, 0, (size_t)c->hop * sizeof *y);
    }
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->blocks = (frames + c->hop - 1) / c->hop;
    gc_pool_run_on(pool, c->workers, job, c, c->blocks * c->islands);
}

static void reset(gc_convolver *c) {
    (void)c; /* nothing is remembered between chunks */
}

const gc_convolver_kind gc_cpu_overlap_save = {new_overlap_save, gc_schedule_history, run, reset, free_overlap_save};
