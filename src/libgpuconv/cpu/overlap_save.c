/*
 * Overlap-save convolution on all cores.
 *
 * A job is one block of one component. A component is a set of inputs and outputs that routes connect: a stereo
 * response has two components with one channel each, true stereo has one component with two. A job transforms each
 * input and each output of its component once; blocks are read from and written to the chunk in place.
 */
#include "cpu_convolver.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <stdlib.h>
#include <string.h>

typedef struct component {
    int inputs, outputs;
    int *input, *output;
} component;

struct gc_convolver {
    const gpuconv_ir *ir;
    gc_fft *fft;
    int64_t points, hop, stride; /* stride: floats per spectrum */
    float *spectra;              /* per plane of the response, scaled by 2 / points */
    int components;
    component *component;
    int *members;    /* the channel numbers that the components point into */
    int max_spectra; /* of an component: one per input, and one for a sum if it has several outputs */
    int workers;
    float *scratch;      /* per worker: max_spectra spectra */
    const float **lists; /* per worker: two lists of `routes` spectra, the factors of a sum of products */
    float *const *in;
    float *const *out;
    int64_t blocks;
};

static void free_overlap_save(gc_convolver *c) {
    if (!c)
        return;
    gc_fft_free(c->fft);
    free(c->spectra);
    free(c->component);
    free(c->members);
    free(c->scratch);
    free(c->lists);
    free(c);
}

/* Finds the components: every channel starts with its own label, and the lower label of the two ends of a route
 * replaces the higher one until no label changes. */
static bool find_components(gc_convolver *c) {
    const gpuconv_ir *ir = c->ir;
    int nodes = ir->inputs + ir->outputs, used = 0;
    int *label = gc_calloc(nodes, sizeof *label);
    c->component = gc_calloc(nodes, sizeof *c->component);
    c->members = gc_calloc(nodes, sizeof *c->members);
    if (!label || !c->component || !c->members) {
        free(label);
        return false;
    }
    for (int i = 0; i < nodes; i++)
        label[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = 0; r < ir->routes; r++) {
            int *a = &label[ir->route[r].input], *b = &label[ir->inputs + ir->route[r].output];
            if (*a != *b) {
                *a = *b = *a < *b ? *a : *b;
                changed = true;
            }
        }
    }
    for (int m = 0; m < nodes; m++) {
        component *part = &c->component[c->components];
        *part = (component){.input = c->members + used};
        for (int i = 0; i < ir->inputs; i++)
            if (label[i] == m)
                part->input[part->inputs++] = i;
        part->output = part->input + part->inputs;
        for (int o = 0; o < ir->outputs; o++)
            if (label[ir->inputs + o] == m)
                part->output[part->outputs++] = o;
        used += part->inputs + part->outputs;
        int spectra = part->inputs + (part->outputs > 1);
        c->max_spectra = spectra > c->max_spectra ? spectra : c->max_spectra;
        c->components += part->outputs > 0; /* inputs without a route need no work; outputs without one are silent */
    }
    free(label);
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
    bool made = c->fft && find_components(c);
    if (made) {
        /* Scratch memory only for as many workers as a chunk has jobs. */
        c->workers = (int)gc_max(1, gc_min(plan->device.threads, plan->chunk / c->hop * c->components));
        c->stride = gc_fft_floats(c->fft);
        c->spectra = gc_calloc(c->ir->planes, c->stride * (int64_t)sizeof(float));
        c->scratch = gc_calloc((int64_t)c->workers * c->max_spectra, c->stride * (int64_t)sizeof(float));
        c->lists = gc_calloc((int64_t)c->workers * 2 * c->ir->routes, sizeof *c->lists);
        made = c->spectra && c->scratch && c->lists && transform_response(c);
    }
    if (!made) {
        free_overlap_save(c);
        return NULL;
    }
    return c;
}

/* Lists the routes into an output: the spectra of their inputs in x, of their planes in h. Returns their number. */
static int64_t list_factors(const gc_convolver *c, const component *part, int output, const float *scratch,
                            const float **x, const float **h) {
    int64_t count = 0;
    for (int r = 0; r < c->ir->routes; r++) {
        const gc_route *route = &c->ir->route[r];
        if (route->output != output)
            continue;
        int i = 0;
        while (part->input[i] != route->input)
            i++;
        x[count] = scratch + i * c->stride;
        h[count++] = c->spectra + route->plane * c->stride;
    }
    return count;
}

static void compute_block(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const component *part = &c->component[index / c->blocks];
    int64_t first = index % c->blocks * c->hop, before = c->points - c->hop;
    float *scratch = c->scratch + (int64_t)worker * c->max_spectra * c->stride;
    float *sum = scratch + (part->outputs > 1 ? part->inputs : 0) *
                               c->stride; /* one output: the sum replaces an input's spectrum */
    const float **x = c->lists + (int64_t)worker * 2 * c->ir->routes, **h = x + c->ir->routes;
    for (int i = 0; i < part->inputs && !gc_cancelled(); i++)
        gc_fft_forward(c->fft, c->in[part->input[i]] + first - before, scratch + i * c->stride);
    for (int o = 0; o < part->outputs && !gc_cancelled(); o++) {
        float *y = c->out[part->output[o]] + first;
        int64_t count = list_factors(c, part, part->output[o], scratch, x, h);
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
    gc_pool_run_on(pool, c->workers, compute_block, c, c->blocks * c->components);
}

static void reset(gc_convolver *c) {
    (void)c; /* keeps no state between chunks */
}

const gc_convolver_kind gc_cpu_overlap_save = {new_overlap_save, gc_schedule_history, run, reset, free_overlap_save};
