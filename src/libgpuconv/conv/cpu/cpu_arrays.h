/*
 * What arrays in host memory (cpu_arrays.c) and the jobs on them (cpu_jobs.c) share.
 */
#ifndef GC_CPU_ARRAYS_H
#define GC_CPU_ARRAYS_H

#include "libgpuconv/conv/backend.h"
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

/* Runs a checked job of shape *shape. @return MEMORY, CANCELLED, UNSUPPORTED */
gpuconv_status gc_cpu_run_job(gc_cpu_arrays *arrays, const gpuconv_arrays_job *job, const gc_job_shape *shape,
                              gpuconv_error *error);

/* The entry `describe` of gc_rows_executor. */
gpuconv_status gc_cpu_describe_job(const gpuconv_arrays_job *job, gpuconv_arrays_plan *plan, gpuconv_error *error);

#endif
