/* What jobs from file to file are made of. */
#ifndef GC_PIPELINE_PIPELINE_H
#define GC_PIPELINE_PIPELINE_H

#include "../gpuconv.h"

/* gpuconv_ir_prepare of a file or pipe that can be interrupted; `cancel` may be NULL. CANCELLED. */
gpuconv_status gc_ir_prepare(const char *path, const gpuconv_preparation *preparation, int inputs, double rate,
                             const volatile int *cancel, gpuconv_ir **ir, gpuconv_error *error);

/* Returns whether a response of this name is read as a matrix, which names further files. */
bool gc_is_matrix(const char *path);

/* Checks every value of a preparation. ARGUMENT */
gpuconv_status gc_preparation_check(const gpuconv_preparation *preparation, gpuconv_error *error);

/* Draws the job's input, output and response, as it was used, into job->plot. ARGUMENT, UNSUPPORTED (no gnuplot), FILE,
 * MEMORY. */
gpuconv_status gc_draw_job(const gpuconv_job *job, const gpuconv_ir *ir, gpuconv_error *error);

/* Measures other ways to convolve an excerpt of the job's input with `ir` into the report's list "comparison"; `plan`
 * is what the job ran with. FILE, MEMORY, DEVICE. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
