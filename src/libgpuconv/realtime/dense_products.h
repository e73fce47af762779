/*
 * Convolution of blocks with a dense matrix of responses in real time: one transform for each input, the matrix product
 * of every bin, one inverse transform for each output. Allocates only when it is made.
 */
#ifndef GC_REALTIME_DENSE_PRODUCTS_H
#define GC_REALTIME_DENSE_PRODUCTS_H

#include "libgpuconv/engine/components.h"

/* The part of the response that is convolved: `partitions` partitions of `length` taps from tap `offset` on. */
typedef struct gc_rt_section {
    int64_t offset, length, partitions;
} gc_rt_section;

typedef struct gc_rt_dense gc_rt_dense;

/* Returns whether a response is dense enough that the matrix product needs less time than a sum for each output. Also
 * false without memory. */
bool gc_rt_is_dense(const gpuconv_ir *ir);

/* Transforms a section of the response with transforms of `points` points. `components` belong to the response; the
 * caller keeps them. Returns NULL without memory or once cancelled. */
gc_rt_dense *gc_rt_dense_new(const gpuconv_ir *ir, const gc_components *components, const gc_rt_section *section,
                             int64_t points);
void gc_rt_dense_free(gc_rt_dense *dense);

/* Forgets all blocks: the next one is block 0. */
void gc_rt_dense_reset(gc_rt_dense *dense);

/* Transforms block `t` of an input: `points` samples. Blocks are numbered from 0, without gaps. */
void gc_rt_dense_forward(gc_rt_dense *dense, int input, int64_t t, const float *samples);

/* Multiplies and sums the spectra of block t and of the earlier blocks, for all outputs. */
void gc_rt_dense_multiply(gc_rt_dense *dense, int64_t t);

/* Writes the samples first .. points - 1 of the block of an output; `first` is a multiple of 32. */
void gc_rt_dense_inverse(gc_rt_dense *dense, int output, int64_t first, float *samples);

#endif
