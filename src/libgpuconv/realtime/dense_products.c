/*
 * Spectra of inputs lie in rings of twice the partitions: block t is written at t % partitions and once more
 * `partitions` behind it, so that the last blocks are always contiguous:
 *
 *      | 4 5 2 3 | 4 5 2 3 |       4 partitions, after block 5: the window 2 3 4 5 begins at index 2
 */
#include "dense_products.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/matrix_product.h"

#include <stdlib.h>
#include <string.h>

/* A component with its matrices. */
typedef struct part {
    gc_matrix_shape shape;
    int64_t h_slab, x_slab, y_slab; /* floats of a slab */
    float *h, *x, *y;
} part;

struct gc_rt_dense {
    const gpuconv_ir *ir;
    const gc_components *components;
    const gc_simd *simd;
    gc_fft *fft;
    int64_t points;
    gc_rt_section section;
    gc_matrix_cut cut;
    part *part;
    float *spectrum; /* one spectrum */
};

bool gc_rt_is_dense(const gpuconv_ir *ir) {
    gc_components components;
    int64_t products = gc_components_find(ir, &components) ? gc_components_products(&components) : INT64_MAX;
    gc_components_free(&components);
    return products >= 4 * gc_max(ir->inputs, ir->outputs) && products < 2 * (int64_t)ir->routes;
}

void gc_rt_dense_free(gc_rt_dense *d) {
    if (!d)
        return;
    for (int i = 0; d->part && i < d->components->count; i++) {
        free(d->part[i].h);
        free(d->part[i].x);
        free(d->part[i].y);
    }
    free(d->part);
    gc_fft_free(d->fft);
    free(d->spectrum);
    free(d);
}

/* Allocates the matrices of each component. Returns false without memory. */
static bool make_parts(gc_rt_dense *d) {
    const int64_t partitions = d->section.partitions;
    bool made = true;
    d->part = gc_calloc(d->components->count, sizeof *d->part);
    if (!d->part)
        return false;
    d->cut = gc_matrix_cut_for_one_block(d->simd, gc_fft_floats(d->fft));
    for (int i = 0; i < d->components->count && made; i++) {
        const gc_component *channels = &d->components->component[i];
        part *m = &d->part[i];
        m->shape =
            (gc_matrix_shape){channels->outputs, channels->inputs, partitions, 2 * partitions, 1, d->cut.width, false};
        m->h_slab = gc_matrix_response_floats(d->simd, &m->shape);
        m->x_slab = gc_matrix_input_floats(d->simd, &m->shape);
        m->y_slab = gc_matrix_output_floats(d->simd, &m->shape);
        m->h = gc_calloc(d->cut.slabs * m->h_slab, sizeof *m->h);
        m->x = gc_calloc(d->cut.slabs * m->x_slab, sizeof *m->x);
        m->y = gc_calloc(d->cut.slabs * m->y_slab, sizeof *m->y);
        made = m->h && m->x && m->y;
    }
    return made;
}

/* Transforms the partitions of one route, each followed by zeros, scaled by 2 / points. `block` has room for a block.
 */
static void transform_route(gc_rt_dense *d, const gc_route *route, float *block) {
    const gc_rt_section *s = &d->section;
    const part *m = &d->part[d->components->output_owner[route->output]];
    const float *taps = gc_ir_plane(d->ir, route->plane);
    for (int64_t p = 0; p < s->partitions && !gc_cancelled(); p++) {
        const int64_t from = s->offset + p * s->length, n = gc_max(0, gc_min(s->length, d->ir->frames - from));
        for (int64_t k = 0; k < n; k++)
            block[k] = taps[from + k] * 2 / (float)d->points;
        memset(block + n, 0, (size_t)(d->points - n) * sizeof *block);
        gc_fft_forward(d->fft, block, d->spectrum);
        gc_matrix_cut_spectrum(d->simd, &d->cut, d->spectrum,
                               m->h + gc_matrix_response_at(d->simd, &m->shape, d->components->output_at[route->output],
                                                            d->components->input_at[route->input], p),
                               m->h_slab);
    }
}

gc_rt_dense *gc_rt_dense_new(const gpuconv_ir *ir, const gc_components *components, const gc_rt_section *section,
                             int64_t points) {
    gc_rt_dense *d = gc_calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->ir = ir;
    d->components = components;
    d->section = *section;
    d->simd = gc_simd_best();
    d->points = points;
    d->fft = gc_fft_new(d->simd, points);
    float *block = gc_calloc(points, sizeof *block);
    bool made = d->fft && block && (d->spectrum = gc_calloc(gc_fft_floats(d->fft), sizeof *d->spectrum)) != NULL;
    made = made && make_parts(d);
    for (int r = 0; made && r < ir->routes; r++)
        transform_route(d, &ir->route[r], block);
    free(block);
    if (!made || gc_cancelled()) {
        gc_rt_dense_free(d);
        return NULL;
    }
    return d;
}

void gc_rt_dense_reset(gc_rt_dense *d) {
    for (int i = 0; i < d->components->count; i++)
        memset(d->part[i].x, 0, (size_t)(d->cut.slabs * d->part[i].x_slab) * sizeof *d->part[i].x);
}

void gc_rt_dense_forward(gc_rt_dense *d, int input, int64_t t, const float *samples) {
    if (d->components->input_owner[input] < 0)
        return;
    const part *m = &d->part[d->components->input_owner[input]];
    const int64_t partitions = d->section.partitions;
    float *to = m->x + (d->components->input_at[input] * m->shape.delay + t % partitions) * d->cut.run;
    gc_fft_forward(d->fft, samples, d->spectrum);
    gc_matrix_cut_spectrum(d->simd, &d->cut, d->spectrum, to, m->x_slab);
    gc_matrix_cut_spectrum(d->simd, &d->cut, d->spectrum, to + partitions * d->cut.run, m->x_slab);
}

void gc_rt_dense_multiply(gc_rt_dense *d, int64_t t) {
    const int64_t window = (t % d->section.partitions + 1) * d->cut.run;
    for (int i = 0; i < d->components->count; i++) {
        const part *m = &d->part[i];
        for (int64_t s = 0; s < d->cut.slabs; s++)
            gc_matrix_multiply(d->simd, &m->shape, gc_matrix_slab_pairs(&d->cut, s), m->h + s * m->h_slab,
                               m->x + s * m->x_slab + window, m->y + s * m->y_slab, 1);
    }
}

void gc_rt_dense_inverse(gc_rt_dense *d, int output, int64_t first, float *samples) {
    if (d->components->output_owner[output] < 0) {
        memset(samples, 0, (size_t)(d->points - first) * sizeof *samples);
        return;
    }
    const part *m = &d->part[d->components->output_owner[output]];
    gc_matrix_join_spectrum(&d->cut, m->y + d->components->output_at[output] * d->cut.run, m->y_slab, d->spectrum);
    gc_fft_inverse(d->fft, NULL, NULL, 0, d->spectrum, samples, first);
}
