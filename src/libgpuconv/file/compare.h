/* The comparison that follows a job: the same job computed in other ways, each timed. */
#ifndef GC_FILE_COMPARE_H
#define GC_FILE_COMPARE_H

#include "file_task.h"

/* The ways: the GPU, the CPU on all cores and on one core, direct sums on one core. */
enum { GC_WAYS = 4 };

/* A time of the whole job. It was measured on `frames` frames of the result from its beginning; if that is a part, the
 * time that depends on the length was multiplied by the ratio of the lengths. */
typedef struct gc_way_time {
    double seconds, spread; /* the median of the runs, and half of their range */
    int runs;
    int64_t frames;
} gc_way_time;

typedef struct gc_way {
    char label[64]; /* such as "GPU", "2 cores", "directly" */
    gpuconv_config config;
    gpuconv_plan *plan;
    bool own;                         /* the job was computed in this way */
    double start;                     /* seconds that planning took, in which a GPU starts */
    gc_way_time computing, from_file; /* with samples in memory and without set-up; from file to file */
    double residual;                  /* dB, relative to the first way; NaN: the first way itself */
} gc_way;

/* What was measured. */
typedef struct gc_comparison {
    const gc_file_task *task; /* the finished job */
    gc_way way[GC_WAYS];
    int ways;
    int64_t frames;     /* of the result */
    double budget;      /* seconds */
    char left_out[512]; /* ways that failed, with the reason; "": none */
} gc_comparison;

/* Computes the job of a finished task in other ways and adds sentences and rows to the report, which may be NULL: then
 * there is nothing to do. `config` is that of the job. Each way runs the whole job if that fits the job's budget, else
 * a part. A way that fails is left out, with its reason. Returns FILE, FORMAT (the input has changed), MEMORY,
 * CANCELLED. */
gpuconv_status gc_compare(const gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                          gpuconv_error *error);

/* Adds the sections "compared" (sentences) and "comparison" (a row for each way). */
void gc_report_comparison(gpuconv_report *report, const gc_comparison *comparison);

#endif
