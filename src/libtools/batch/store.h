/* Storing: writes the samples that were computed for a task, mixed where its entry says so. */
#ifndef GPUCONV_BATCH_STORE_H
#define GPUCONV_BATCH_STORE_H

#include "task.h"

/* Scratch memory of a worker, grown as needed. */
typedef struct gc_scratch {
    void *raw; /* samples of one file in its own format */
    int64_t raw_bytes;
} gc_scratch;

void gc_scratch_free(gc_scratch *scratch);

/* Writes samples. Threads that only copy samples into files are limited by the worker's copy_permits, because they
 * contend inside the kernel; threads that encode are not. */
gpuconv_status gc_store_samples(const gc_worker *worker, gc_writer *writer, const void *raw, int64_t frames,
                                gpuconv_error *error);

/* Stores a task from the whole convolutions of its parts: rows[part][channel] has frames + taps - 1 frames. Commits the
 * outputs. */
gpuconv_status gc_store_rows(const gc_worker *worker, gc_task *task, float *const *const *rows, gc_scratch *scratch,
                             gpuconv_error *error);

#endif
