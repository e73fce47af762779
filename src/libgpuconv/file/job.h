/* What jobs from file to file are made of. */
#ifndef GC_FILE_JOB_H
#define GC_FILE_JOB_H

#include "gpuconv.h"

/* Draws the job's input, output and response, as it was used, into job->plot. ARGUMENT, UNSUPPORTED (no gnuplot), FILE,
 * MEMORY. */
gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, gpuconv_error *error);

/* Measures other ways to convolve an excerpt of the job's input with `ir` into the report's list "comparison"; `plan`
 * is what the job ran with. FILE, MEMORY, DEVICE. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
