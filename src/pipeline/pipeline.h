/* The comparison that may follow a job from file to file. */
#ifndef GC_PIPELINE_PIPELINE_H
#define GC_PIPELINE_PIPELINE_H

#include "../gpuconv.h"

/* Measures other ways to convolve an excerpt of the job's input with `ir` into the report's list "comparison"; `plan`
 * is what the job ran with. FILE, MEMORY, DEVICE. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
