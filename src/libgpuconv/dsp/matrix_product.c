/* Layout of the operands of a product of matrices of spectra (matrix_product.h). */
#include "matrix_product.h"

#include "libgpuconv/core/memory.h"

#include <string.h>

/* Bytes of one slab of all input spectra: with the responses that pass through, they stay in a second-level cache. */
enum { SLAB_BYTES = 384 << 10, MAX_RUN = 1280 /* bytes of one spectrum in a slab */ };

/* Bytes of the spectra of all inputs from which on a last-level cache does not keep them until they are used. */
static const int64_t beyond_caches = INT64_C(32) << 20;

int gc_matrix_pair(const gc_simd *simd) {
    return simd->matrix->pair;
}

static gc_matrix_cut cut_of_width(const gc_simd *simd, int64_t floats, int64_t width) {
    const int64_t run = width * simd->matrix->pair;
    return (gc_matrix_cut){.floats = floats, .width = width, .run = run, .slabs = gc_divide_up(floats, run)};
}

gc_matrix_cut gc_matrix_cut_make(const gc_simd *simd, int64_t floats, int64_t spectra) {
    const int64_t bytes = simd->matrix->pair * (int64_t)sizeof(float);
    int64_t width = 33;
    while (width > 1 && (width * bytes > MAX_RUN || spectra * width * bytes > SLAB_BYTES))
        width = width / 4 * 2 + 1; /* 33, 17, 9, 5, 3, 1 */
    gc_matrix_cut cut = cut_of_width(simd, floats, width);
    cut.past_caches = spectra * floats * (int64_t)sizeof(float) > beyond_caches;
    return cut;
}

gc_matrix_cut gc_matrix_cut_for_one_block(const gc_simd *simd, int64_t floats) {
    return cut_of_width(simd, floats, 1);
}

/* Copies a run. A short one is copied in vectors: a call of memcpy for each pair takes longer than its copy. */
static void copy_run(float *to, const float *from, int64_t floats) {
    enum { STEP = 8, SHORT = 32 }; /* every pair is a multiple of STEP floats */
    if (floats > SHORT)
        memcpy(to, from, (size_t)floats * sizeof *to);
    else
        for (int64_t i = 0; i < floats; i += STEP)
            memcpy(to + i, from + i, STEP * sizeof *to);
}

void gc_matrix_cut_spectrum(const gc_simd *simd, const gc_matrix_cut *c, const float *spectrum, float *runs,
                            int64_t slab) {
    if (c->past_caches) {
        simd->matrix->cut_past_caches(c, spectrum, runs, slab);
        return;
    }
    for (int64_t s = 0; s < c->slabs; s++)
        copy_run(runs + s * slab, spectrum + s * c->run, gc_min(c->run, c->floats - s * c->run));
}

void gc_matrix_join_spectrum(const gc_matrix_cut *c, const float *runs, int64_t slab, float *spectrum) {
    for (int64_t s = 0; s < c->slabs; s++)
        copy_run(spectrum + s * c->run, runs + s * slab, gc_min(c->run, c->floats - s * c->run));
}

int64_t gc_matrix_slab_pairs(const gc_matrix_cut *c, int64_t slab) {
    return gc_min(c->run, c->floats - slab * c->run) * c->width / c->run;
}

int64_t gc_matrix_response_floats(const gc_simd *simd, const gc_matrix_shape *s) {
    return s->outputs * s->inputs * s->partitions * s->width * simd->matrix->pair;
}

int64_t gc_matrix_input_floats(const gc_simd *simd, const gc_matrix_shape *s) {
    return s->inputs * s->delay * s->width * simd->matrix->pair;
}

int64_t gc_matrix_output_floats(const gc_simd *simd, const gc_matrix_shape *s) {
    return s->outputs * s->capacity * s->width * simd->matrix->pair;
}

int64_t gc_matrix_response_at(const gc_simd *simd, const gc_matrix_shape *s, int64_t output, int64_t input,
                              int64_t partition) {
    const int64_t group = output / GC_MATRIX_ROWS * GC_MATRIX_ROWS, rows = gc_min(GC_MATRIX_ROWS, s->outputs - group);
    const int64_t factors = s->inputs * s->partitions, factor = input * s->partitions + partition;
    return (group * factors + factor * rows + output - group) * s->width * simd->matrix->pair;
}

void gc_matrix_multiply(const gc_simd *simd, const gc_matrix_shape *shape, int64_t pairs, const float *h,
                        const float *x, float *y, int64_t blocks) {
    simd->matrix->multiply(shape, pairs, h, x, y, blocks);
}
