/* Batch: convolves all entries of a manifest, on the cores or GPUs of this process and of the other ranks, if any. */
#ifndef GPUCONV_BATCH_BATCH_H
#define GPUCONV_BATCH_BATCH_H

#include "manifest.h"
#include "ranks.h"

/* Counts of all ranks since the beginning; devices: of this rank only. */
typedef struct gc_batch_progress {
    int64_t total, done, failed, clipped; /* entries; clipped: samples */
    int64_t skipped;                      /* entries that earlier runs have done, with --resume */
    double seconds;                       /* elapsed */
    double audio;                         /* seconds of input convolved */
    int devices;                          /* GPUs in use; 0: the CPU */
    int device[64];                       /* their CUDA numbers */
    double device_audio[64];              /* seconds of input that each has convolved */
} gc_batch_progress;

typedef struct gc_batch {
    gc_manifest *manifest; /* entries in conflict with others are refused in it */
    const char *folder;    /* of the outputs and results.jsonl */
    gpuconv_backend backend;
    int workers;       /* threads; 0: one per core */
    const int *device; /* CUDA device numbers; NULL: all */
    int devices;
    bool resume, fail_fast;
    int64_t shard_size;    /* entries in each tar file of outputs; 0: the outputs are files */
    const gc_ranks *ranks; /* NULL: one process */
    const volatile int *cancel;
    void (*progress)(void *context, const gc_batch_progress *progress); /* ten times a second and at the end; or NULL */
    void (*note)(void *context, const char *text);                      /* receives messages for the user; or NULL */
    /* Receives the reasons of failures at the end, the most frequent first, with one complete message each; or NULL. */
    void (*failures)(void *context, int64_t count, const char *example);
    void *context;
} gc_batch;

/* Processes all entries. An entry that fails is recorded in results.jsonl and counted, and the batch continues. The
 * batch itself fails with FILE (the folder or results.jsonl), DEVICE, MEMORY, STATE (another rank ended) or CANCELLED.
 */
gpuconv_status gc_batch_run(const gc_batch *batch, gc_batch_progress *progress, gpuconv_error *error);

#endif
