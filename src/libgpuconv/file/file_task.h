/* One run of a job from file to file. */
#ifndef GC_FILE_FILE_TASK_H
#define GC_FILE_FILE_TASK_H

#include "job.h"

typedef struct gc_file_task {
    const gpuconv_job *job;
    bool announce;           /* send notes about the response and about the plan */
    int64_t part;            /* result frames to compute; -1: all */
    double begin;            /* time of the start, seconds */
    gpuconv_ir *shaped, *ir; /* the response before and after gains and the wet/dry mix */
    float peak;              /* of `shaped` */
    double silence;          /* at its beginning, seconds */
    gpuconv_plan *plan;
    gc_transfer transfer; /* its figures stay when the run has ended */
    double gpu_start;     /* seconds in which a GPU was started, or looked for */
    double setup, wall;   /* seconds from the start until the first sample is read, and until the end */
} gc_file_task;

/* Starts a run and opens its input. The task is freed in any case. Returns the errors of gc_reader_open. */
gpuconv_status gc_file_task_open(gc_file_task *task, const gpuconv_job *job, gpuconv_error *error);

/* Convolves the open input into the output file, and sends notes and progress. Afterwards the plan and the responses
 * still exist. `report` may be NULL. Returns the errors of gpuconv_convolve_file. */
gpuconv_status gc_file_task_convolve(gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error);

/* Runs in the same way in order to be timed: the samples go to a file in the folder of the output, in the same format,
 * which has no name or a temporary one and never takes that of the output. gc_file_task_free removes it. Sends and
 * reports nothing. `part`: about this many frames of the result, from its beginning, in whole chunks; -1: all of them.
 * The latency of the configuration bounds the chunks. */
gpuconv_status gc_file_task_try(gc_file_task *task, const gpuconv_config *config, int64_t part, gpuconv_error *error);

void gc_file_task_free(gc_file_task *task);

#endif
