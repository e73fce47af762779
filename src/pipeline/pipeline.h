/* What jobs from file to file are made of. */
#ifndef GC_PIPELINE_PIPELINE_H
#define GC_PIPELINE_PIPELINE_H

#include "../gpuconv.h"

/* The response in a file for an input of so many channels at `rate`: resampled, levelled by `gain` dB, routed.
 * *recorded: the rate it had. As gpuconv_ir_load, _resample, _gain, _route. */
gpuconv_status gc_prepare_response(const char *path, double gain, int channels, double rate, double *recorded,
                                   gpuconv_ir **ir, gpuconv_error *error);

/* Measures other ways to convolve an excerpt of the job's input with `ir` into the report's list "comparison"; `plan`
 * is what the job ran with. FILE, MEMORY, DEVICE. */
gpuconv_status gc_compare(const gpuconv_job *job, const gpuconv_ir *ir, const gpuconv_plan *plan,
                          gpuconv_report *report, gpuconv_error *error);

#endif
