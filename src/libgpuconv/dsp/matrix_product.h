/*
 * Products of matrices of spectra: for each bin, a matrix of responses times a matrix of input blocks. Each element is
 * loaded into a register once for several products, where sums of single products load two elements for each.
 *
 * Spectra are cut into slabs of `width` pairs. A pair is a vector of real parts and a vector of imaginary parts
 * (fft_kernels.c). A slab of all spectra of a matrix is contiguous, so that one core works on a few hundred kilobytes:
 *
 *      responses   [group][input][partition][output of the group][width]      a group has GC_MATRIX_ROWS outputs or,
 *                                                                            at the end, the rest
 *      inputs      [input][delay][width]         block t of partition p is at index t + partitions - 1 - p
 *      outputs     [output][capacity][width]
 *
 * `width` is odd: the pairs of neighbouring spectra then lie in different sets of the first-level cache.
 */
#ifndef GC_DSP_MATRIX_PRODUCT_H
#define GC_DSP_MATRIX_PRODUCT_H

#include "simd.h"

#include <stdbool.h>
#include <stdint.h>

enum { GC_MATRIX_ROWS = 3 }; /* outputs whose sums one step keeps in registers */

typedef struct gc_matrix_shape {
    int64_t outputs, inputs, partitions;
    int64_t delay;    /* spectra of an input */
    int64_t capacity; /* spectra of an output */
    int64_t width;    /* pairs of a slab, odd */
    bool past_caches; /* store outputs, which are aligned to GC_ALIGNMENT, past the caches */
} gc_matrix_shape;

/* Returns the floats of a pair. */
int gc_matrix_pair(const gc_simd *simd);

/* How the spectra of one transform are cut. */
typedef struct gc_matrix_cut {
    int64_t floats;   /* of a spectrum */
    int64_t width;    /* pairs of a slab */
    int64_t run;      /* floats of one spectrum in a slab */
    int64_t slabs;    /* the last one may hold fewer pairs */
    bool past_caches; /* copy spectra into their runs past the caches, which the spectra of all inputs exceed */
} gc_matrix_cut;

/* The functions of one instruction set. */
typedef struct gc_matrix_kernels {
    int pair; /* floats of a pair */

    /* gc_matrix_cut_spectrum, past the caches; the runs are aligned to GC_ALIGNMENT. */
    void (*cut_past_caches)(const gc_matrix_cut *cut, const float *spectrum, float *runs, int64_t slab);
    void (*multiply)(const gc_matrix_shape *shape, int64_t pairs, const float *h, const float *x, float *y,
                     int64_t blocks);
} gc_matrix_kernels;

/* Returns the cut for spectra of `floats` floats: slabs as wide as a core's cache allows for `spectra` input spectra.
 */
gc_matrix_cut gc_matrix_cut_make(const gc_simd *simd, int64_t floats, int64_t spectra);

/* Returns the cut for products of one block at a time: slabs of one pair, so that the responses, which are used once a
 * block and come from memory, are read from the first to the last address. */
gc_matrix_cut gc_matrix_cut_for_one_block(const gc_simd *simd, int64_t floats);

/* Copy a spectrum into its runs, or back. The first run is at `runs`, the next ones `slab` floats apart. */
void gc_matrix_cut_spectrum(const gc_simd *simd, const gc_matrix_cut *cut, const float *spectrum, float *runs,
                            int64_t slab);
void gc_matrix_join_spectrum(const gc_matrix_cut *cut, const float *runs, int64_t slab, float *spectrum);

/* Return the floats of one slab of all responses, inputs and outputs. */
int64_t gc_matrix_response_floats(const gc_simd *simd, const gc_matrix_shape *shape);
int64_t gc_matrix_input_floats(const gc_simd *simd, const gc_matrix_shape *shape);
int64_t gc_matrix_output_floats(const gc_simd *simd, const gc_matrix_shape *shape);

/* Returns the place of a response in its slab, in floats. */
int64_t gc_matrix_response_at(const gc_simd *simd, const gc_matrix_shape *shape, int64_t output, int64_t input,
                              int64_t partition);

/* Computes the first `pairs` pairs of a slab of the first `blocks` output blocks from the slabs of responses and
 * inputs.
 */
void gc_matrix_multiply(const gc_simd *simd, const gc_matrix_shape *shape, int64_t pairs, const float *h,
                        const float *x, float *y, int64_t blocks);

/* Returns the pairs of slab number `slab`. */
int64_t gc_matrix_slab_pairs(const gc_matrix_cut *cut, int64_t slab);

#endif
