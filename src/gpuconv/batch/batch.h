/* A batch: a manifest's entries, done by all cores or all GPUs of this process and of others beside it. */
#ifndef GPUCONV_BATCH_BATCH_H
#define GPUCONV_BATCH_BATCH_H

#include "manifest.h"
#include "ranks.h"

enum { GC_BATCH_LANES = 256 };

/* What has been done so far, by all ranks; `lane` are this rank's devices. */
typedef struct gc_batch_progress {
    int64_t total, done, failed, skipped, clipped; /* skipped: done before, on --resume */
    double seconds, audio;                         /* since the beginning; of input, in seconds */
    int devices;                                   /* of this rank; 0: its cores */
    int device[64];
    double device_audio[64];
} gc_batch_progress;

typedef struct gc_batch {
    const gc_manifest *manifest;
    const char *folder;
    gpuconv_backend backend;
    int workers;       /* threads, 0: one a core */
    const int *device; /* numbers; NULL: all */
    int devices;
    bool resume, fail_fast;
    const gc_ranks *ranks; /* NULL: alone */
    const volatile int *cancel;
    void (*progress)(void *context, const gc_batch_progress *progress); /* twice a second, and at the end; or NULL */
    void (*note)(void *context, const char *text);
    void *context;
} gc_batch;

/* Does everything. Entries that fail are told in results.jsonl and counted; the batch goes on. An error is what ends
 * it: FILE (the folder, the list of results), DEVICE, MEMORY, CANCELLED. */
gpuconv_status gc_batch_run(const gc_batch *batch, gc_batch_progress *progress, gpuconv_error *error);

#endif
