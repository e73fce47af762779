/* The steps of gpuconv_convolve_file after the output is written: report, comparison and drawing. */
#ifndef GC_FILE_JOB_H
#define GC_FILE_JOB_H

#include "transfer.h"

/* dB: a response begins with the first sample that comes this close to its peak. */
enum { GC_ONSET_LEVEL = -60 };

/* A finished convolution. */
typedef struct gc_job_result {
    const gpuconv_job *job;
    const gpuconv_plan *plan;
    const gpuconv_ir *shaped, *ir; /* the response before and after gains and the wet/dry mix */
    const gc_transfer *transfer;
    const gc_stream_stats *stats;
    double setup, wall; /* seconds */
} gc_job_result;

/* Adds the result to the report, which may be NULL. */
void gc_report_job(gpuconv_report *report, const gc_job_result *result);

/* Adds the files and times of a job whose sources move, which has no plan and no response of its own. */
void gc_report_move(gpuconv_report *report, const gc_job_result *result);

/* Draws the job's input, its output and the prepared response into the file job->plot. Fails with ARGUMENT, UNSUPPORTED
 * (no gnuplot), FILE, MEMORY or CANCELLED. */
gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, gpuconv_error *error);

#endif
