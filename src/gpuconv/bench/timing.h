/* Times and verifies single plans: shared by the benchmarks of cases, lengths and batches. */
#ifndef GPUCONV_BENCH_TIMING_H
#define GPUCONV_BENCH_TIMING_H

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/measure/measure.h"
#include "material.h"

enum { GC_BENCH_RUNS_MOST = GC_TIMING_RUNS_MAX };

/* The largest relative RMS error in dB of a correct output. */
#define GC_BENCH_ERROR_BOUND (-120.0)

/* The largest error in dB that sums over the whole output may show: it is an estimate within 6 dB. */
#define GC_BENCH_WHOLE_BOUND (-110.0)

/* An algorithm is skipped if its predicted time exceeds that of the planner's choice by this factor. */
#define GC_BENCH_SLOWEST 40.0

typedef struct gc_bench_result {
    double seconds, spread; /* median, half of the range */
    double error;           /* dB */
    char name[96];          /* backend, algorithm, transform size */
} gc_bench_result;

/* Passes a text to the benchmark's note callback. */
void gc_bench_note(const gc_bench *bench, const char *text);

/* Lists the backends to be measured: all available ones, or the configured one. @return their number */
int gc_bench_backends(const gc_bench *bench, const gc_backend *list[GC_BACKENDS]);

/* Fails with DEVICE because the list is empty. */
gpuconv_status gc_bench_fail_no_backend(gpuconv_error *error);

/* Fills the outputs with NaN, so that a sample that is not written is detected. */
void gc_bench_poison(const gc_material *material);

/* Computes result->error. @return STATE if it exceeds the bound, CANCELLED */
gpuconv_status gc_bench_verify(const gc_bench *bench, const gc_material *material, gc_bench_result *result,
                               gpuconv_error *error);

/* Times a plan on the material and verifies its output. @return any status of the backend, STATE, CANCELLED */
gpuconv_status gc_bench_time_plan(const gc_bench *bench, const gpuconv_plan *plan, gc_material *material,
                                  gc_bench_result *result, gpuconv_error *error);

/* Adds a point to the benchmark's roofline, if there is one and it is not full. */
void gc_roofline_add(const gc_bench *bench, const gpuconv_plan *plan, const gc_bench_case *what, double seconds);

#endif
