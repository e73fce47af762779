/*
 * What arrays in host memory (cpu_arrays.c) and the jobs on them (cpu_jobs.c) share.
 */
#ifndef GC_CPU_ARRAYS_H
#define GC_CPU_ARRAYS_H

#include "libgpuconv/engine/backend.h"
#include "rows.h"

typedef struct gc_cpu_arrays {
    gpuconv_arrays base;
    gc_rows rows;
} gc_cpu_arrays;

typedef struct gc_cpu_responses {
    gpuconv_responses base;
    gc_kept_response *kept;
    gpuconv_ir *ir; /* owns the taps and has the routes; NULL: without routes */
} gc_cpu_responses;

/* Members of gc_rows_executor (engine/rows_executor.h). */
gpuconv_status gc_cpu_run_job(gpuconv_arrays *arrays, const gpuconv_arrays_job *job, void *unused, size_t bytes,
                              struct CUstream_st *stream, gpuconv_error *error);
gpuconv_status gc_cpu_plan_job(const gpuconv_arrays *arrays, const gpuconv_arrays_job *job, char *text, size_t size,
                               gpuconv_error *error);

#endif
