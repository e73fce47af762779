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

#include <stdint.h>

enum { GC_MATRIX_ROWS = 3 }; /* outputs whose sums one step keeps in registers */

typedef struct gc_matrix_shape {
    int64_t outputs, inputs, partitions;
    int64_t capacity; /* blocks for which `outputs` has room; inputs have room for capacity + partitions - 1 */
    int64_t width;    /* pairs of a slab, odd */
} gc_matrix_shape;

/* The functions of one instruction set. */
typedef struct gc_matrix_kernels {
    int pair; /* floats of a pair */
    void (*multiply)(const gc_matrix_shape *shape, const float *h, const float *x, float *y, int64_t blocks);
} gc_matrix_kernels;

/* Returns the floats of a pair. */
int gc_matrix_pair(const gc_simd *simd);

/* Returns the width for a matrix: as wide as a core's cache allows for `capacity` blocks of all inputs. */
int64_t gc_matrix_width(const gc_simd *simd, int64_t inputs, int64_t delay);

/* Return the floats of one slab of all responses, inputs and outputs. */
int64_t gc_matrix_response_floats(const gc_simd *simd, const gc_matrix_shape *shape);
int64_t gc_matrix_input_floats(const gc_simd *simd, const gc_matrix_shape *shape);
int64_t gc_matrix_output_floats(const gc_simd *simd, const gc_matrix_shape *shape);

/* Returns the place of a response in its slab, in floats. */
int64_t gc_matrix_response_at(const gc_simd *simd, const gc_matrix_shape *shape, int64_t output, int64_t input,
                              int64_t partition);

/* Computes one slab of the first `blocks` output blocks from the slabs of responses and inputs. */
void gc_matrix_multiply(const gc_simd *simd, const gc_matrix_shape *shape, const float *h, const float *x, float *y,
                        int64_t blocks);

#endif
