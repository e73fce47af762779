/* Sources that move in circles before a set, for the benchmark of real time. */
#ifndef GPUCONV_BENCH_REALTIME_MOTION_H
#define GPUCONV_BENCH_REALTIME_MOTION_H

#include "realtime.h"

typedef struct gc_bench_motion gc_bench_motion;

/* Opens the set of a case, and makes its sources; each has its own elevation and speed. @return the errors of
 * gpuconv_sofa_open and gpuconv_motion_new; MEMORY */
gpuconv_status gc_bench_motion_new(const gc_bench_realtime_case *what, int sources, gc_bench_motion **motion,
                                   gpuconv_error *error);
void gc_bench_motion_free(gc_bench_motion *motion);

const char *gc_bench_motion_plan(const gc_bench_motion *motion);
int gc_bench_motion_receivers(const gc_bench_motion *motion);

/* Processes a block, and counts it as missed if it is not complete. */
void gc_bench_motion_process(gc_bench_motion *motion, const float *const *in, float *const *out);

/* Returns the number of missed blocks. */
int64_t gc_bench_motion_missed(const gc_bench_motion *motion);

/* Renders the end of `blocks` blocks again, on the CPU without a clock. `block_of` fills the rows of block k. *decibels
 * gets the distance of `out`, planes of the last block, from the result. @return MEMORY, CANCELLED */
gpuconv_status gc_bench_motion_compare(gc_bench_motion *motion, int64_t blocks,
                                       void (*block_of)(void *context, int64_t k, const float **rows), void *context,
                                       const float *out, double *decibels, gpuconv_error *error);

#endif
