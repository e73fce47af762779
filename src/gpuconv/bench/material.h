/* Signals and responses from a fixed seed, and a check that shares no code with what is measured. */
#ifndef GPUCONV_BENCH_MATERIAL_H
#define GPUCONV_BENCH_MATERIAL_H

#include "bench.h"

typedef struct gc_material {
    gc_bench_case what;
    float **in, **out, **taps; /* a channel */
    gpuconv_ir *ir;
} gc_material;

/* MEMORY */
gpuconv_status gc_material_new(const gc_bench_case *what, gc_material *material, gpuconv_error *error);
void gc_material_free(gc_material *material);

/* Relative RMS error of `out` in dB, at a few hundred frames, against sums in doubles; infinity where a sample is none.
 */
double gc_material_error(const gc_material *material);

/* The same after `out` was brought to the level at which the error is least; *level says by how many dB it was above.
 */
double gc_material_error_at_best_level(const gc_material *material, double *level);

#endif
