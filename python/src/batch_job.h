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

/* What to do: a manifest, or patterns. */
typedef struct gcpy_batch {
    const char *manifest;      /* NULL: patterns of inputs and responses */
    const char *const *inputs; /* patterns, NULL-terminated; NULL: not given */
    const char *const *responses, *const *noises;
    const char *segments, *folder;
    const char *const *column, *const *value; /* defaults of columns, NULL-terminated */
    int pick;                                 /* 0 random, 1 all, 2 one in turn */
    uint64_t seed;
    int backend, workers, resume, fail_fast;
    const int *device; /* CUDA device numbers */
    int devices;       /* 0: as many as pay off */
    int64_t shard_size;
    const volatile int *cancel;
    void (*progress)(void *context, const gcpy_counts *counts);
    void (*note)(void *context, const char *text);
    void *context;
} gcpy_batch;

/* Runs the batch; writes manifest.csv (of patterns), results.jsonl and the list of outputs, if the list of inputs has a
 * kind, to the folder. Fails as gc_batch_run, or with ARGUMENT (a column). */
gpuconv_status gcpy_batch_run(const gcpy_batch *batch, gcpy_counts *counts, gpuconv_error *error);

/* Room-acoustic figures of one channel, in the order edt, t20, t30, c80, d50, centre, noise, onset. `band` 0: the whole
 * spectrum. Returns MEMORY, CANCELLED. */
gpuconv_status gcpy_acoustics(const float *taps, int64_t frames, double rate, double band, double figures[8],
                              gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
