/* The optional steps of gpuconv_convolve_file after the output is written: drawing and comparing. */
#ifndef GC_FILE_JOB_H
#define GC_FILE_JOB_H

#include "gpuconv.h"

/* Draws the job's input, its output and the prepared response into the file job->plot. Fails with ARGUMENT, UNSUPPORTED
 * (no gnuplot), FILE, MEMORY or CANCELLED. */
gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, gpuconv_error *error);

/* Times several ways to convolve an excerpt of the job's input with `ir`, and adds them to the report as the list
 * "comparison". `plan` is the plan that the job used. Fails with FILE, MEMORY, DEVICE or CANCELLED. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
