/*
 * The three kinds of sections with transforms (section.h). A call of blocks is one pass of jobs. A call of slabs or of
 * dense matrices has three: forward transforms of the blocks of each input; sums of products; inverse transforms of the
 * blocks of each output. The second pass goes slab by slab over the bins, and within a slab over all blocks, so that
 * the slabs of the responses and of the delay line stay in the cache.
 *
 *      inputs -> transforms -> | slab of x | slab of responses -> | slab of y | -> transforms -> outputs
 *
 * The delay line of an input is a ring of spectra. A matrix product needs it in one piece: that of dense matrices
 * advances by the blocks of a call, and its last partitions - 1 spectra move to the front where the next call would not
 * fit behind them.
 */
#include "cpu_algorithm.h"

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/matrix_product.h"

#include <stdlib.h>
#include <string.h>

/* A component of a dense section with its matrices. */
typedef struct part {
    gc_matrix_shape shape;
    int64_t h_slab, x_slab, y_slab; /* floats of a slab */
    float *h, *x, *y;
} part;

struct gc_convolver {
    gc_section section;
    gc_components components;
    const gc_simd *simd;
    gc_fft *fft;
    int64_t stride; /* floats of a spectrum */
    int64_t block;  /* number of the call's first block since the reset */
    int64_t ring;   /* spectra in the delay line of an input */
    int workers;    /* threads that compute */
    float *taps;    /* per worker: a block of samples; only during the set-up */

    /* Blocks and slabs: */
    float *spectra;       /* planes x partitions */
    float *delay;         /* inputs x ring; of blocks of one partition: workers x most_spectra */
    int64_t most_spectra; /* of the inputs of a component, and of a sum for several outputs */
    float *sums;          /* of slabs: outputs x blocks; of several partitions one */
    const float **lists;  /* per worker: two lists of spectra, the factors of a sum of products */
    int64_t list_length;  /* most routes of an output x partitions */

    /* Dense matrices: */
    part *part;     /* per component */
    float *scratch; /* per worker: a spectrum */
    gc_matrix_cut cut;
    int64_t at; /* index of the first spectrum in the delay lines that the call's first block needs */

    /* The call: */
    gc_pool *pool;
    float *const *in;
    float *const *out;
    int64_t active; /* blocks */
};

void gc_section_free(gc_convolver *c) {
    if (!c)
        return;
    for (int i = 0; c->part && i < c->components.count; i++) {
        free(c->part[i].h);
        free(c->part[i].x);
        free(c->part[i].y);
    }
    free(c->part);
    free(c->spectra);
    free(c->delay);
    free(c->sums);
    free(c->lists);
    free(c->scratch);
    free(c->taps);
    gc_components_free(&c->components);
    gc_fft_free(c->fft);
    free(c);
}

/* Runs a job for each index on the pool; without a pool on the calling thread. */
static void run_jobs(gc_convolver *c, void (*job)(void *context, int64_t index, int worker), int64_t count) {
    if (c->pool)
        gc_pool_run_on(c->pool, c->workers, job, c, count);
    else
        for (int64_t i = 0; i < count; i++)
            job(c, i, 0);
}

static bool is_cancelled(const gc_convolver *c) {
    return c->pool && gc_cancelled();
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

static float *worker_scratch(const gc_convolver *c, int worker) {
    return c->scratch + worker * c->stride;
}

/* Transforms the partitions of one plane or, of dense matrices, of one route, each followed by zeros and scaled by
 * 2 / points. */
static void transform_taps(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_section *s = &c->section;
    const bool dense = s->kind == GC_SECTION_DENSE;
    const gc_route *route = &s->ir->route[dense ? index : 0];
    const int64_t plane = dense ? route->plane : index;
    const part *m = dense ? &c->part[c->components.output_owner[route->output]] : NULL;
    float *block = c->taps + worker * s->points;
    for (int64_t p = 0; p < s->partitions && !gc_cancelled(); p++) {
        const int64_t from = s->offset + p * s->length, n = gc_max(0, gc_min(s->length, s->ir->frames - from));
        for (int64_t k = 0; k < n; k++)
            block[k] = gc_ir_plane(s->ir, (int)plane)[from + k] * 2 / (float)s->points;
        memset(block + n, 0, (size_t)(s->points - n) * sizeof *block);
        float *spectrum = dense ? worker_scratch(c, worker) : c->spectra + (plane * s->partitions + p) * c->stride;
        gc_fft_forward(c->fft, block, spectrum);
        if (dense)
            gc_matrix_cut_spectrum(c->simd, &c->cut, spectrum,
                                   m->h + gc_matrix_response_at(c->simd, &m->shape,
                                                                c->components.output_at[route->output],
                                                                c->components.input_at[route->input], p),
                                   m->h_slab);
    }
}

/* Returns whether each worker has a delay line of its own, of one block. */
static bool is_own_delay(const gc_section *s) {
    return s->kind == GC_SECTION_BLOCKS && s->partitions == 1;
}

int gc_section_most_spectra(const gc_components *components) {
    int most = 0;
    for (int i = 0; i < components->count; i++)
        most = (int)gc_max(most, components->component[i].inputs + (components->component[i].outputs > 1));
    return most;
}

/* Allocates the spectra of blocks or slabs. Returns false without memory. */
static bool make_spectra(gc_convolver *c) {
    const gc_section *s = &c->section;
    const int64_t bytes = c->stride * (int64_t)sizeof(float);
    int most = 0;
    for (int o = 0; o < s->ir->outputs; o++)
        most = (int)gc_max(most, c->components.first_route[o + 1] - c->components.first_route[o]);
    c->ring = s->kind == GC_SECTION_SLABS ? s->partitions - 1 + s->blocks : s->partitions;
    c->most_spectra = gc_section_most_spectra(&c->components);
    c->list_length = most * s->partitions;
    c->spectra = gc_calloc(s->ir->planes * s->partitions, bytes);
    c->delay = gc_calloc(is_own_delay(s) ? c->workers * c->most_spectra : s->ir->inputs * c->ring, bytes);
    c->sums = gc_calloc(s->kind == GC_SECTION_SLABS ? s->ir->outputs * s->blocks : !is_own_delay(s), bytes);
    c->lists = gc_calloc(c->workers * 2 * c->list_length, sizeof *c->lists);
    return c->spectra && c->delay && c->sums && c->lists;
}

/* Allocates dense matrices. Those of responses are zeroed only if a route is missing: the others are
 * filled by the transforms of their routes. A call of one block moves its delay line once in `partitions` calls.
 * Returns false without memory. */
static bool make_matrices(gc_convolver *c) {
    const gc_section *s = &c->section;
    const bool full = gc_components_products(&c->components) == s->ir->routes, one_block = s->blocks == 1;
    int64_t inputs = 1;
    c->ring = s->partitions - 1 + s->blocks + (one_block ? s->partitions - 1 : 0);
    c->scratch = gc_calloc(c->workers * c->stride, sizeof *c->scratch);
    c->part = gc_calloc(c->components.count, sizeof *c->part);
    if (!c->part || !c->scratch)
        return false;
    for (int i = 0; i < c->components.count; i++)
        inputs = gc_max(inputs, c->components.component[i].inputs);
    c->cut = one_block ? gc_matrix_cut_for_one_block(c->simd, c->stride)
                       : gc_matrix_cut_make(c->simd, c->stride, inputs * c->ring);
    bool made = true;
    for (int i = 0; i < c->components.count && made; i++) {
        const gc_component *channels = &c->components.component[i];
        part *m = &c->part[i];
        m->shape = (gc_matrix_shape){channels->outputs, channels->inputs, s->partitions,     c->ring,
                                     s->blocks,         c->cut.width,     c->cut.past_caches};
        m->h_slab = gc_matrix_response_floats(c->simd, &m->shape);
        m->x_slab = gc_matrix_input_floats(c->simd, &m->shape);
        m->y_slab = gc_matrix_output_floats(c->simd, &m->shape);
        m->h = (full ? gc_alloc : gc_calloc)(c->cut.slabs * m->h_slab, sizeof *m->h);
        m->x = gc_calloc(c->cut.slabs * m->x_slab, sizeof *m->x);
        m->y = gc_alloc(c->cut.slabs * m->y_slab, sizeof *m->y);
        made = m->h && m->x && m->y;
    }
    return made;
}

gc_convolver *gc_section_new(const gc_section *section, gc_pool *pool) {
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->section = *section;
    c->simd = gc_simd_best();
    c->pool = pool;
    if (section->kind == GC_SECTION_DIRECT) /* has nothing to prepare */
        return c;
    c->fft = gc_fft_new(c->simd, section->points);
    bool made = c->fft && gc_components_find(section->ir, &c->components);
    if (made) {
        c->workers = pool ? gc_pool_threads(pool) : 1;
        if (section->kind == GC_SECTION_BLOCKS) /* scratch memory only for as many workers as a call has jobs */
            c->workers = (int)gc_max(1, gc_min(c->workers, section->blocks * c->components.count));
        c->stride = gc_fft_floats(c->fft);
        c->taps = gc_alloc(c->workers * section->points, sizeof *c->taps);
        made = c->taps && (section->kind == GC_SECTION_DENSE ? make_matrices(c) : make_spectra(c));
    }
    if (made) {
        run_jobs(c, transform_taps, section->kind == GC_SECTION_DENSE ? section->ir->routes : section->ir->planes);
        made = !gc_cancelled();
    }
    if (!made) {
        gc_section_free(c);
        return NULL;
    }
    free(c->taps);
    c->taps = NULL;
    return c;
}

gc_convolver *gc_section_new_whole(const gpuconv_plan *plan, gc_pool *pool) {
    const gc_schedule *s = &plan->choice.schedule;
    const gc_cpu_algorithm *algorithm = gc_cpu_algorithm_of(&plan->choice);
    const gc_section whole = {.kind = algorithm->section,
                              .direct = algorithm->direct,
                              .ir = plan->ir,
                              .length = s->partition,
                              .partitions = s->partitions,
                              .points = s->transform,
                              .hop = s->hop,
                              .blocks = plan->choice.chunk / s->hop};
    return gc_section_new(&whole, pool);
}

void gc_section_reset(gc_convolver *c) {
    c->block = c->at = 0; /* blocks, slabs and a single partition read no spectrum of a block before block 0 */
    for (int i = 0; c->part && c->section.partitions > 1 && i < c->components.count; i++)
        memset(c->part[i].x, 0, (size_t)(c->cut.slabs * c->part[i].x_slab) * sizeof *c->part[i].x);
}

/* ---- A call ------------------------------------------------------------------------------------------------------ */

/* Returns block t of an input: `points` samples that end with its hop. */
static const float *samples_of(const gc_convolver *c, int64_t input, int64_t t) {
    return c->in[input] + (t + 1) * c->section.hop - c->section.points;
}

/* Returns the index of the spectrum of input block t in a delay line. One of a single block needs no division, which
 * takes two per cent of the time of a short block. */
static int64_t ring_at(const gc_convolver *c, int64_t t) {
    return c->ring > 1 ? (c->block + t) % c->ring : 0;
}

/* Returns the delay line of an input. */
static float *delay_line(const gc_convolver *c, int64_t input, int worker) {
    const int64_t own = worker * c->most_spectra + c->components.input_at[input];
    return c->delay + (is_own_delay(&c->section) ? own : input * c->ring) * c->stride;
}

/* Lists the factors of the sum for block t of an output, from float `first` of their spectra on: input blocks in `x`,
 * partitions in x + list_length. Returns their number. */
static int64_t list_factors(const gc_convolver *c, int64_t output, int64_t t, int64_t first, int worker) {
    const gc_section *s = &c->section;
    const int64_t partitions = gc_min(s->partitions, c->block + t + 1); /* those that meet a block since the reset */
    const float **x = c->lists + worker * 2 * c->list_length;
    int64_t count = 0;
    for (int r = c->components.first_route[output]; r < c->components.first_route[output + 1]; r++) {
        const gc_route *route = &s->ir->route[r];
        const float *line = delay_line(c, route->input, worker) + first;
        const float *spectra = c->spectra + route->plane * s->partitions * c->stride + first;
        int64_t at = ring_at(c, t - s->silent);
        for (int64_t p = s->silent; p < partitions; p++, count++) {
            x[count] = line + at * c->stride;
            x[c->list_length + count] = spectra + p * c->stride;
            at = at > 0 ? at - 1 : c->ring - 1;
        }
    }
    return count;
}

/* Convolves one block of one component. An output that only silent partitions meet is silent. */
static void convolve_block(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_section *s = &c->section;
    const gc_component *channels = &c->components.component[index / c->active];
    const int64_t t = index % c->active, at = ring_at(c, t);
    const float **x = c->lists + worker * 2 * c->list_length;
    float *sum = c->sums;
    if (is_own_delay(s)) /* the sum of a single output replaces the spectrum of an input */
        sum = delay_line(c, channels->input[0], worker) + (channels->outputs > 1 ? channels->inputs : 0) * c->stride;
    for (int i = 0; i < channels->inputs && !is_cancelled(c); i++)
        gc_fft_forward(c->fft, samples_of(c, channels->input[i], t),
                       delay_line(c, channels->input[i], worker) + at * c->stride);
    for (int o = 0; o < channels->outputs && !is_cancelled(c); o++) {
        float *to = c->out[channels->output[o]] + t * s->hop;
        const int64_t count = list_factors(c, channels->output[o], t, 0, worker);
        if (count)
            gc_fft_inverse(c->fft, x, x + c->list_length, count, sum, to, s->points - s->hop);
        else
            memset(to, 0, (size_t)s->hop * sizeof *to);
    }
}

/* Transforms one input block into the delay line. An input without a route is not read. */
static void forward(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_section *s = &c->section;
    const int64_t input = index / c->active, t = index % c->active;
    const int owner = c->components.input_owner[input];
    if (owner < 0)
        return;
    if (s->kind == GC_SECTION_SLABS) {
        gc_fft_forward(c->fft, samples_of(c, input, t), delay_line(c, input, worker) + ring_at(c, t) * c->stride);
        return;
    }
    const part *m = &c->part[owner];
    const int64_t to = c->components.input_at[input] * c->ring + c->at + s->partitions - 1 + t;
    gc_fft_forward(c->fft, samples_of(c, input, t), worker_scratch(c, worker));
    gc_matrix_cut_spectrum(c->simd, &c->cut, worker_scratch(c, worker), m->x + to * c->cut.run, m->x_slab);
}

static int64_t slab_count(const gc_convolver *c) {
    return gc_divide_up(c->stride, GC_SECTION_SLAB);
}

/* Sums the products of one slab of one output, for all blocks. */
static void sum_slab(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const int64_t output = index / slab_count(c), first = index % slab_count(c) * GC_SECTION_SLAB;
    const float **x = c->lists + worker * 2 * c->list_length;
    for (int64_t t = 0; t < c->active && !is_cancelled(c); t++) {
        const int64_t count = list_factors(c, output, t, first, worker);
        gc_fft_multiply_sum(c->fft, c->sums + (output * c->section.blocks + t) * c->stride + first, x,
                            x + c->list_length, count, gc_min(GC_SECTION_SLAB, c->stride - first));
    }
}

/* Returns whether a further call fits into the delay line behind this one. */
static bool delay_line_ends(const gc_convolver *c) {
    const gc_section *s = &c->section;
    return c->at + c->active + s->partitions - 1 + s->blocks > c->ring;
}

/* Computes one slab of the products of one component, then moves its delay line if it ends. */
static void multiply_slab(void *context, int64_t index, int worker) {
    (void)worker;
    gc_convolver *c = context;
    const part *m = &c->part[index / c->cut.slabs];
    const int64_t slab = index % c->cut.slabs, run = c->cut.run;
    float *x = m->x + slab * m->x_slab;
    gc_matrix_multiply(c->simd, &m->shape, gc_matrix_slab_pairs(&c->cut, slab), m->h + slab * m->h_slab,
                       x + c->at * run, m->y + slab * m->y_slab, c->active);
    for (int64_t i = 0; i < m->shape.inputs && delay_line_ends(c); i++)
        memmove(x + i * c->ring * run, x + (i * c->ring + c->at + c->active) * run,
                (size_t)((c->section.partitions - 1) * run) * sizeof *x);
}

/* Transforms one output block back. */
static void inverse(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_section *s = &c->section;
    const int64_t output = index / c->active, t = index % c->active;
    const int owner = c->components.output_owner[output];
    float *spectrum =
        s->kind == GC_SECTION_SLABS ? c->sums + (output * s->blocks + t) * c->stride : worker_scratch(c, worker);
    if (owner < 0)
        return;
    if (s->kind == GC_SECTION_DENSE) {
        const part *m = &c->part[owner];
        const int64_t from = c->components.output_at[output] * s->blocks + t;
        gc_matrix_join_spectrum(&c->cut, m->y + from * c->cut.run, m->y_slab, spectrum);
    }
    gc_fft_inverse(c->fft, NULL, NULL, 0, spectrum, c->out[output] + t * s->hop, s->points - s->hop);
}

void gc_section_run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    const gc_section *s = &c->section;
    if (s->kind == GC_SECTION_DIRECT) {
        s->direct(s->ir, pool, in, out, frames);
        return;
    }
    c->pool = pool;
    c->in = in;
    c->out = out;
    c->active = gc_divide_up(frames, s->hop);
    for (int o = 0; o < s->ir->outputs; o++)
        if (c->components.output_owner[o] < 0) /* without a route */
            memset(out[o], 0, (size_t)(c->active * s->hop) * sizeof **out);
    if (s->kind == GC_SECTION_BLOCKS) {
        run_jobs(c, convolve_block, c->components.count * c->active);
    } else {
        const bool dense = s->kind == GC_SECTION_DENSE;
        run_jobs(c, forward, s->ir->inputs * c->active);
        run_jobs(c, dense ? multiply_slab : sum_slab,
                 dense ? c->components.count * c->cut.slabs : s->ir->outputs * slab_count(c));
        run_jobs(c, inverse, s->ir->outputs * c->active);
        c->at = !dense || delay_line_ends(c) ? 0 : c->at + c->active;
    }
    c->block += c->active;
}
