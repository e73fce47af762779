/* Storing: writes the samples that were computed for a task, mixed where its entry says so. */
#ifndef GPUCONV_BATCH_STORE_H
#define GPUCONV_BATCH_STORE_H

#include "task.h"

/* Scratch memory of a worker, grown as needed. */
typedef struct gc_scratch {
    void *raw; /* samples of one file in its own format */
    int64_t raw_bytes;
    float **rows; /* first sample of each channel */
    int rows_capacity;
} gc_scratch;

/* Enlarge the scratch memory. @return false: out of memory */
bool gc_scratch_raw(gc_scratch *scratch, int64_t bytes);
bool gc_scratch_rows(gc_scratch *scratch, int channels);
void gc_scratch_free(gc_scratch *scratch);

/* Writes samples. Threads that only copy samples into files are limited by the worker's copy_permits, because they
 * contend inside the kernel; threads that encode are not. */
gpuconv_status gc_store_samples(const gc_worker *worker, gc_writer *writer, const void *raw, int64_t frames,
                                gpuconv_error *error);

/* Stores a task from the whole convolutions of its parts: rows[part][channel] has frames + taps - 1 frames. Commits the
 * outputs; `where` is for the report. */
gpuconv_status gc_store_rows(const gc_worker *worker, gc_task *task, float *const *const *rows, gc_scratch *scratch,
                             const char *where, int64_t *clipped, gpuconv_error *error);

#endif
