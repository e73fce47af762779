/* The comparison that follows a job: the same job computed in other ways, each timed. */
#ifndef GC_FILE_COMPARE_H
#define GC_FILE_COMPARE_H

#include "file_task.h"

/* Computes the job of a finished task in other ways and adds sentences and rows to the report, which may be NULL: then
 * there is nothing to do. `config` is that of the job. Each way runs the whole job if that fits the job's budget, else
 * a part. A way that fails is left out, with its reason. Returns FILE, FORMAT (the input has changed), MEMORY,
 * CANCELLED. */
gpuconv_status gc_compare(const gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                          gpuconv_error *error);

#endif
