/* From file to file, and the comparison that may follow. */
#ifndef GC_PIPELINE_PIPELINE_H
#define GC_PIPELINE_PIPELINE_H

#include "../gpuconv.h"

/* Reads and prepares the response of a job for an input of the given shape: resampled, levelled, routed. */
gpuconv_status gc_prepare_response(const gpuconv_job *job, int channels, double rate, gpuconv_ir **ir,
                                   gpuconv_error *error);

/* Measures other ways to convolve an excerpt of the job's input with `ir` into the report's list "comparison"; `plan` is
 * what the job ran with. FILE, MEMORY, DEVICE. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
