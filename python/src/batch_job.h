/* The batch of the command (gpuconv batch) as one call, and its counts. */
#ifndef GPUCONV_PYTHON_BATCH_JOB_H
#define GPUCONV_PYTHON_BATCH_JOB_H

#include "gpuconv.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts so far: entries; samples; seconds. */
typedef struct gcpy_counts {
    int64_t total, done, failed, clipped, skipped;
    double seconds, audio;
} gcpy_counts;

/* A value for a column of a manifest (libtools/batch/column.h) that rows leave empty. */
typedef struct gcpy_text {
    const char *column, *value;
} gcpy_text;

/* What to do: a manifest with or without responses, or patterns of inputs and responses. Lists of patterns end with
 * NULL; NULL: not given. */
typedef struct gcpy_batch {
    const char *manifest, *segments, *id_suffix;
    const char *const *inputs, *const *responses, *const *noises;
    const char *folder;
    const gcpy_text *text;
    int texts;
    int pick; /* 0 random, 1 all, 2 one in turn */
    uint64_t seed;
    int backend, workers, absolute, resume, fail_fast;
    int64_t shard_size;
    const int *device; /* NULL: all */
    int devices;
    const volatile int *cancel;
    void (*progress)(void *context, const gcpy_counts *counts);
    void (*note)(void *context, const char *text);
    void *context;
} gcpy_batch;

/* Runs the batch; writes results.jsonl to the folder, manifest.csv if something was picked, and a list of the outputs
 * if the manifest is a list of another program. Fails as gc_batch_run, and with ARGUMENT (a text). */
gpuconv_status gcpy_batch_run(const gcpy_batch *batch, gcpy_counts *counts, gpuconv_error *error);

/* Returns whether there is a CUDA backend, which this loads. */
bool gcpy_has_cuda(void);

#ifdef __cplusplus
}
#endif

#endif
