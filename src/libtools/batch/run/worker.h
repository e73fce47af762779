/* Worker thread of a batch: processes manifest entries one after the other and reports the outcome of each. */
#ifndef GPUCONV_BATCH_RUN_WORKER_H
#define GPUCONV_BATCH_RUN_WORKER_H

#include "libgpuconv/conv/backend.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/output/results.h"
#include "responses.h"

#include <semaphore.h>

typedef struct gc_worker {
    const gc_manifest *manifest;
    gc_responses *responses;
    const char *folder; /* of the outputs */
    const gc_backend *backend;
    int devices; /* GPUs of the batch; 0: the CPU */
    int device;  /* the worker's own */
    const volatile int *cancel;
    sem_t *copy_permits; /* held while samples are copied into a file */

    /* Takes the next entry. @return false: none is left */
    bool (*next)(void *context, int64_t *entry);

    /* Receives the outcome of an entry, once for each that was taken and not cancelled. */
    void (*report)(void *context, int64_t entry, const gc_outcome *outcome);
    void *context;
} gc_worker;

/* Processes entries until none is left or the batch is cancelled. *has_slot: the worker got a slot of its device; no
 * entry is taken without one. Fails with MEMORY or DEVICE if it got none, and with the error of a device that fails
 * later, which is reported for the entries in its slots. */
gpuconv_status gc_work(const gc_worker *worker, bool *has_slot, gpuconv_error *error);

#endif
