/*
 * Convolution of dense matrices on all cores: the forward transform once for each input block, the inverse once for
 * each output block, and between them, for each bin, the matrix of responses times the matrix of input blocks
 * (dsp/matrix_product.h). Components are computed as dense matrices; a missing route is a response of zeros.
 *
 * A response is one partition (overlap-save) or several (a frequency-domain delay line); the products of all partitions
 * of all inputs belong to one sum. A chunk is computed in three passes over spectra that are cut into slabs:
 *
 *      inputs -> forward transforms -> | slab of x | x slab of responses -> | slab of y | -> inverse transforms ->
 * outputs
 */
#include "cpu_algorithm.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/matrix_product.h"
#include "libgpuconv/engine/components.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A component with its matrices. */
typedef struct part {
    const gc_component *channels;
    gc_matrix_shape shape;
    int64_t h_slab, x_slab, y_slab; /* floats of a slab */
    float *h, *x, *y;
} part;

struct gc_convolver {
    const gpuconv_ir *ir;
    const gc_simd *simd;
    gc_fft *fft;
    gc_components components;
    part *part;
    int64_t points, hop, partition, partitions;
    int64_t stride; /* floats of a spectrum */
    gc_matrix_cut cut;
    int64_t blocks, active; /* of a full chunk, of this chunk */
    float *scratch;         /* per worker: a spectrum and a block of samples */
    int64_t scratch_floats;
    float *const *in;
    float *const *out;
};

static void free_matrix(gc_convolver *c) {
    if (!c)
        return;
    for (int i = 0; c->part && i < c->components.count; i++) {
        free(c->part[i].h);
        free(c->part[i].x);
        free(c->part[i].y);
    }
    free(c->part);
    gc_components_free(&c->components);
    gc_fft_free(c->fft);
    free(c->scratch);
    free(c);
}

static float *worker_scratch(const gc_convolver *c, int worker) {
    return c->scratch + worker * c->scratch_floats;
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------ */

/* Transforms the partitions of one route, each followed by zeros, scaled by 2 / points. */
static void transform_route(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const gc_route *route = &c->ir->route[index];
    const part *m = &c->part[c->components.output_owner[route->output]];
    const float *taps = gc_ir_plane(c->ir, route->plane);
    float *spectrum = worker_scratch(c, worker), *block = spectrum + gc_round_up(c->stride, 16);
    for (int64_t p = 0; p < c->partitions && !gc_cancelled(); p++) {
        int64_t n = gc_min(c->partition, c->ir->frames - p * c->partition);
        for (int64_t k = 0; k < n; k++)
            block[k] = taps[p * c->partition + k] * 2 / (float)c->points;
        memset(block + n, 0, (size_t)(c->points - n) * sizeof *block);
        gc_fft_forward(c->fft, block, spectrum);
        gc_matrix_cut_spectrum(c->simd, &c->cut, spectrum,
                               m->h + gc_matrix_response_at(c->simd, &m->shape, c->components.output_at[route->output],
                                                            c->components.input_at[route->input], p),
                               m->h_slab);
    }
}

/* Allocates the matrices of each component. Those of responses are zeroed only if a route is missing: the others are
 * filled by the transforms of their routes. Returns false without memory. */
static bool make_parts(gc_convolver *c) {
    int64_t inputs = 1;
    if (!gc_components_find(c->ir, &c->components))
        return false;
    c->part = gc_calloc(c->components.count, sizeof *c->part);
    if (!c->part)
        return false;
    for (int i = 0; i < c->components.count; i++)
        inputs = gc_max(inputs, c->components.component[i].inputs);
    const bool full = gc_components_products(&c->components) == c->ir->routes;
    const int64_t delay = c->blocks + c->partitions - 1;
    c->cut = gc_matrix_cut_make(c->simd, c->stride, inputs * delay);
    bool made = true;
    for (int i = 0; i < c->components.count && made; i++) {
        const gc_component *channels = &c->components.component[i];
        part *m = &c->part[i];
        m->channels = channels;
        m->shape = (gc_matrix_shape){channels->outputs, channels->inputs, c->partitions,     delay,
                                     c->blocks,         c->cut.width,     c->cut.past_caches};
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

static gc_convolver *new_matrix(const gpuconv_plan *plan, gc_pool *pool) {
    const gc_schedule *s = &plan->choice.schedule;
    gc_convolver *c = gc_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ir = plan->ir;
    c->simd = gc_simd_best();
    c->points = s->transform;
    c->hop = s->hop;
    c->partition = s->partition;
    c->partitions = s->partitions;
    c->blocks = plan->choice.chunk / s->hop;
    c->fft = gc_fft_new(c->simd, c->points);
    bool made = c->fft != NULL;
    if (made) {
        c->stride = gc_fft_floats(c->fft);
        c->scratch_floats = gc_round_up(c->stride, 16) + gc_round_up(c->points, 16);
        c->scratch = gc_calloc(plan->device.threads, c->scratch_floats * (int64_t)sizeof(float));
        made = c->scratch && make_parts(c);
    }
    if (made) {
        gc_pool_run(pool, transform_route, c, c->ir->routes);
        made = !gc_cancelled();
    }
    if (!made) {
        free_matrix(c);
        return NULL;
    }
    return c;
}

/* ---- A chunk ----------------------------------------------------------------------------------------------------- */

/* Transforms one input block. */
static void forward(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const int input = (int)(index / c->active);
    const int64_t t = index % c->active;
    if (c->components.input_owner[input] < 0)
        return;
    const part *m = &c->part[c->components.input_owner[input]];
    float *spectrum = worker_scratch(c, worker);
    gc_fft_forward(c->fft, c->in[input] + t * c->hop - (c->points - c->hop), spectrum);
    gc_matrix_cut_spectrum(c->simd, &c->cut, spectrum,
                           m->x + (c->components.input_at[input] * m->shape.delay + c->partitions - 1 + t) * c->cut.run,
                           m->x_slab);
}

/* Computes one slab of the products of one component, then moves its delay line on by the blocks of this chunk. */
static void multiply(void *context, int64_t index, int worker) {
    (void)worker;
    gc_convolver *c = context;
    const part *m = &c->part[index / c->cut.slabs];
    const int64_t slab = index % c->cut.slabs, delay = m->shape.delay;
    float *x = m->x + slab * m->x_slab;
    gc_matrix_multiply(c->simd, &m->shape, gc_matrix_slab_pairs(&c->cut, slab), m->h + slab * m->h_slab, x,
                       m->y + slab * m->y_slab, c->active);
    for (int i = 0; i < m->channels->inputs && c->partitions > 1; i++)
        memmove(x + i * delay * c->cut.run, x + (i * delay + c->active) * c->cut.run,
                (size_t)((c->partitions - 1) * c->cut.run) * sizeof *x);
}

/* Transforms one output block back into the chunk. An output without a route is silent. */
static void backward(void *context, int64_t index, int worker) {
    gc_convolver *c = context;
    const int output = (int)(index / c->active);
    const int64_t t = index % c->active;
    float *to = c->out[output] + t * c->hop, *spectrum = worker_scratch(c, worker);
    if (c->components.output_owner[output] < 0) {
        memset(to, 0, (size_t)c->hop * sizeof *to);
        return;
    }
    const part *m = &c->part[c->components.output_owner[output]];
    gc_matrix_join_spectrum(&c->cut, m->y + (c->components.output_at[output] * c->blocks + t) * c->cut.run, m->y_slab,
                            spectrum);
    gc_fft_inverse(c->fft, NULL, NULL, 0, spectrum, to, c->points - c->hop);
}

static void run(gc_convolver *c, gc_pool *pool, float *const *in, float *const *out, int64_t frames) {
    c->in = in;
    c->out = out;
    c->active = (frames + c->hop - 1) / c->hop;
    gc_pool_run(pool, forward, c, c->ir->inputs * c->active);
    gc_pool_run(pool, multiply, c, c->components.count * c->cut.slabs);
    gc_pool_run(pool, backward, c, c->ir->outputs * c->active);
}

static void reset(gc_convolver *c) {
    for (int i = 0; i < c->components.count && c->partitions > 1; i++)
        memset(c->part[i].x, 0, (size_t)(c->cut.slabs * c->part[i].x_slab) * sizeof(float));
}

/* ---- Planning ---------------------------------------------------------------------------------------------------- */

/* A chunk has the blocks for which one pass over the responses pays: full tiles, fewer where their spectra take more
 * than 256 MB. */
static int64_t chunk_frames(const gc_problem *p, const gc_schedule *s, int threads) {
    (void)threads;
    const int64_t block = 4 * s->transform * (p->ir->inputs + p->ir->outputs), most = INT64_C(256) << 20;
    int64_t blocks = 4 * GC_MATRIX_ROWS;
    while (blocks > GC_MATRIX_ROWS && blocks * block > most)
        blocks -= GC_MATRIX_ROWS;
    return blocks * s->hop;
}

/* Returns the time of `count` rows or columns of a product of matrices, in full ones: rows of a tile that is not full
 * cost a little more. */
static double full_rows(int64_t count) {
    static const double rest[GC_MATRIX_ROWS] = {0, 1.7, 2.4};
    const int64_t left = count % GC_MATRIX_ROWS;
    return (double)(count - left) + rest[left];
}

/* Products are bound by arithmetic or by reading the responses once a chunk; spectra of inputs and outputs are written
 * and read in slabs. */
static double seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double total, int64_t chunk) {
    const double bins = (double)s->transform / 2, byte = c->seconds[GC_COST_CPU_BYTE];
    const double fft = gc_cpu_fft_seconds(c, s->transform), moves = (double)s->transform * 8 * byte;
    const int64_t hops = chunk / s->hop; /* of a chunk */
    const double blocks = ceil(total / (double)s->hop), columns = full_rows(hops);
    const double chunks = ceil(blocks / (double)hops);
    double sum = 0, spectra = 0;
    for (int i = 0; i < p->components.count; i++) {
        const gc_component *channels = &p->components.component[i];
        const double factors = channels->inputs * (double)s->partitions;
        const double products = full_rows(channels->outputs) * factors * columns * c->seconds[GC_COST_CPU_MATRIX];
        sum += chunks * bins * fmax(products, channels->outputs * factors * 8 * byte);
        spectra +=
            blocks * (channels->inputs + channels->outputs) + chunks * channels->inputs * (double)(s->partitions - 1);
    }
    return blocks * (p->ir->inputs + p->ir->outputs) * fft + gc_cpu_copy_seconds(p, c, total) +
           (sum + spectra * bins * 16 * byte) + (double)(p->ir->routes * s->partitions) * (fft + moves);
}

static double floats(const gc_problem *p, const gc_schedule *s, int64_t chunk, int threads) {
    const int64_t hops = chunk / s->hop;
    const double block = (double)s->transform, past = (double)(s->partitions - 1);
    const double columns = (p->ir->inputs + p->ir->outputs) * (double)hops + p->ir->inputs * past;
    return (double)p->products * (double)s->partitions * block + threads * block * 2 + block * columns +
           p->ir->inputs * (double)gc_schedule_overlap(s);
}

/* The responses alone are two times their taps in every size. */
const gc_cpu_algorithm gc_cpu_matrix = {
    .row = GC_CPU_ROW(GPUCONV_ALGORITHM_MATRIX, "matrix", GC_FFT_MIN_POINTS, 1 << 24, 1e9, 2.5),
    .schedule = gc_schedule_dense,
    .chunk = chunk_frames,
    .seconds = seconds,
    .floats = floats,
    .new = new_matrix,
    .run = run,
    .reset = reset,
    .free = free_matrix,
};
