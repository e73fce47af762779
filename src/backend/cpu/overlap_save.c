/*
 * Overlap-save on all cores. Two real blocks that share their responses travel as the real and imaginary part of one
 * complex transform: the product with the spectrum of a real response keeps them apart, so nothing is untangled.
 *
 * A job is one pair of neighbouring blocks of one island, an island being the inputs and outputs that routes connect: a
 * stereo response makes two islands of one channel each, true stereo one of two. Inside a job every input is
 * transformed once and every output once.
 */
#include "convolver.h"

#include "../../core/memory.h"
#include "../../dsp/fft.h"

#include <stdlib.h>
#include <string.h>

typedef struct island {
    int inputs, outputs;
    int *input, *output;
} island;

struct gc_convolver {
    const gpuconv_ir *ir;
    const gc_simd *simd;
    gc_fft *fft;
    int64_t points, hop, stride; /* stride: floats between the spectra of a worker */
    float *spectra;              /* planes x points complex, scaled by 1 / points */
    int islands;
    island *island;
    int *members; /* what the islands point into */
    int most;     /* inputs of the largest island */
    int workers;
    float *scratch; /* a worker: most + 1 spectra */
    float *const *in;
    float *const *out;
    int64_t frames, pairs;
};

static void free_overlap_save(gc_convolver *c) {
    if (!c)
        return;
    gc_fft_free(c->fft);
    free(c->spectra);
    free(c->island);
    free(c->members);
    free(c->scratch);
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
        c->most = l->inputs > c->most ? l->inputs : c->most;
        c->islands += l->outputs > 0; /* an input that goes nowhere is no work; an output from nowhere is silence */
    }
    free(mark);
    return true;
}

static gc_convolver *new_overlap_save(const gpuconv_plan *plan) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->simd = gc_simd_best();
    c->points = plan->schedule.transform;
    c->hop = plan->schedule.hop;
    c->stride = 2 * c->points;
    c->workers = plan->device.threads;
    c->fft = gc_fft_new(c->points);
    c->spectra = gc_calloc(c->ir->planes, c->stride * (int64_t)sizeof(float));
    if (!c->fft || !c->spectra || !find_islands(c) ||
        !(c->scratch = gc_calloc((int64_t)c->workers * (c->most + 1), c->stride * (int64_t)sizeof(float)))) {
        free_overlap_save(c);
        return NULL;
    }
    for (int p = 0; p < c->ir->planes; p++) {
        float *s = c->spectra + p * c->stride;
        for (int64_t k = 0; k < c->ir->frames; k++)
            s[2 * k] = gc_ir_plane(c->ir, p)[k] / (float)c->points;
        gc_fft_forward(c->fft, s);
    }
    return c;
}

static void job(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const island *l = &c->island[index / c->pairs];
    int64_t first = index % c->pairs * 2 * c->hop, second = first + c->hop;
    int64_t before = c->points - c->hop;
    float *scratch = c->scratch + worker * (c->most + 1) * c->stride, *sum = scratch + c->most * c->stride;
    for (int i = 0; i < l->inputs; i++) {
        float *z = scratch + i * c->stride;
        const float *a = c->in[l->input[i]] + first - before, *b = c->in[l->input[i]] + second - before;
        for (int64_t n = 0; n < c->points; n++) {
            z[2 * n] = a[n];
            z[2 * n + 1] = b[n];
        }
        gc_fft_forward(c->fft, z);
    }
    for (int o = 0; o < l->outputs; o++) {
        int routes = 0;
        for (int r = 0; r < c->ir->routes; r++) {
            const gc_route *route = &c->ir->route[r];
            if (route->output != l->output[o])
                continue;
            int i = 0;
            while (l->input[i] != route->input)
                i++;
            const float *z = scratch + i * c->stride, *h = c->spectra + route->plane * c->stride;
            (routes++ ? c->simd->multiply_add : c->simd->multiply)(sum, z, h, c->points);
        }
        float *y = c->out[l->output[o]];
        if (!routes) {
            memset(y + first, 0, (size_t)(2 * c->hop) * sizeof *y);
            continue;
        }
        gc_fft_backward(c->fft, sum);
        const float *kept = sum + 2 * before;
        for (int64_t n = 0; n < c->hop; n++) {
            y[first + n] = kept[2 * n];
            y[second + n] = kept[2 * n + 1];
        }
    }
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->frames = frames;
    c->pairs = (frames + 2 * c->hop - 1) / (2 * c->hop);
    gc_pool_run(pool, job, c, c->pairs * c->islands);
}

static void reset(gc_convolver *c) {
    (void)c; /* nothing is remembered between chunks */
}

const gc_convolver_kind gc_cpu_overlap_save = {new_overlap_save, gc_schedule_history, run, reset, free_overlap_save};
