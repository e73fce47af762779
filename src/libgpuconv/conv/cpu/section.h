/*
 * Convolution with a section of a response on the CPU: equal partitions of spectra, a frequency-domain delay line, sums
 * of products, inverse transforms; or directly. The algorithms of files (overlap_save.c, partitioned.c, cpu_dense.c)
 * take the whole response as one section and share a call among the threads of a pool; a stage of real time is one
 * section, computed by one thread.
 */
#ifndef GC_CPU_SECTION_H
#define GC_CPU_SECTION_H

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/fft.h"

enum { GC_SECTION_SLAB = 1024 }; /* floats: slabs of a few hundred partitions fill half of a second-level cache */

typedef struct gc_convolver gc_convolver;

typedef enum gc_section_kind {
    GC_SECTION_BLOCKS, /* a job is one block of one component: each of its inputs and outputs is transformed once, while
                          the spectra are in the caches. Several partitions: without a pool, one block a call */
    GC_SECTION_SLABS,  /* a job sums one slab of the spectra of one output, for all blocks of a call */
    GC_SECTION_DENSE,  /* a job multiplies, in one slab, for each bin the matrix of responses and the matrix of input
                          blocks (dsp/matrix_product.h); a missing route is a response of zeros */
    GC_SECTION_DIRECT  /* gc_section.direct computes a call from samples; the whole response, with a pool */
} gc_section_kind;

/* Computes the first `frames` frames of all outputs. ir->frames - 1 frames before the inputs are readable; nothing is
 * kept from one call to the next. */
typedef void gc_section_direct(const gpuconv_ir *ir, gc_pool *pool, float *const *in, float *const *out,
                               int64_t frames);

typedef struct gc_section {
    gc_section_kind kind;
    gc_section_direct *direct;          /* of DIRECT */
    const gpuconv_ir *ir;               /* the caller keeps it */
    int64_t offset, length, partitions; /* partitions of `length` taps each from tap `offset` on; several: of a hop */
    int64_t silent;                     /* partitions at the beginning that are zero and skipped; only of BLOCKS */
    int64_t points, hop; /* of a transform (dsp/fft.h), 0 of DIRECT; output frames of a block, 1 or a multiple of 32 */
    int64_t blocks;      /* of the longest call */
} gc_section;

/* Allocates a convolver and transforms the partitions, on the pool if there is one. Returns NULL without memory or once
 * cancelled. */
gc_convolver *gc_section_new(const gc_section *section, gc_pool *pool);

/* Makes a convolver for the entire response of a plan for the CPU: of the kind of its algorithm, cut by its schedule,
 * with the chunks of the plan. The pool has plan->device.threads threads. */
gc_convolver *gc_section_new_whole(const gpuconv_plan *plan, gc_pool *pool);

void gc_section_free(gc_convolver *convolver);

/* Returns the most spectra that a job of BLOCKS with one partition holds: those of the inputs of a component, and of a
 * sum for several outputs. */
int gc_section_most_spectra(const gc_components *components);

/* Forgets all earlier calls. */
void gc_section_reset(gc_convolver *convolver);

/* Convolves the next `frames` frames, 1 .. blocks * hop. in[channel] holds whole blocks; points - hop frames before
 * them are readable. out[channel] gets whole blocks. Without a pool the calling thread computes all of it, allocates
 * nothing and never waits. */
void gc_section_run(gc_convolver *convolver, gc_pool *pool, float *const *in, float *const *out, int64_t frames);

#endif
