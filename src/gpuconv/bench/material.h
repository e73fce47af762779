/* Test signals and responses from a fixed seed, and a verification of outputs that shares no code with the backends. */
#ifndef GPUCONV_BENCH_MATERIAL_H
#define GPUCONV_BENCH_MATERIAL_H

#include "bench.h"
#include "libgpuconv/dsp/point_sums.h"

typedef struct gc_material {
    gc_bench_case what;
    float **in, **out; /* by channel */
    float **taps;      /* by channel; of a matrix: response of input i and output o at i * outputs + o */
    gpuconv_ir *ir;
    gc_point_sums *sums; /* of the correct output, by channel */
} gc_material;

/* Creates the input, the response and space for the output. @return MEMORY, CANCELLED */
gpuconv_status gc_material_new(const gc_bench_case *what, gc_material *material, gpuconv_error *error);
void gc_material_free(gc_material *material);

/* Returns the RMS error of `out` at 160 frames of each channel in dB, relative to direct sums in doubles; infinity if a
 * sample is NaN or infinite. */
double gc_material_error(const gc_material *material);

/* Returns the relative error of the whole output in dB, every sample included, estimated within 6 dB by sums at a few
 * points (dsp/point_sums.h). Of a matrix: gc_material_error. */
double gc_material_whole_error(const gc_material *material);

#endif
