/* One worker of a batch: takes entries, convolves them on lanes of its own, and tells what became of each. */
#ifndef GPUCONV_BATCH_WORK_H
#define GPUCONV_BATCH_WORK_H

#include "libgpuconv/engine/batch_convolver.h"
#include "manifest.h"
#include "responses.h"
#include "results.h"

#include <semaphore.h>

typedef struct gc_worker {
    const gc_manifest *manifest;
    gc_responses *responses;
    const char *folder; /* for outputs */
    const gc_batch_backend *backend;
    int devices, device; /* 0: the CPU */
    const volatile int *cancel;
    sem_t *copying; /* taken while samples are copied into a file */

    /* The next entry to do; false: no more. */
    bool (*next)(void *context, int64_t *entry);
    void (*tell)(void *context, int64_t entry, const gc_outcome *outcome);
    void *context;
} gc_worker;

/* Until there is no more to do, or cancelled. *began: it has a lane; nothing is taken without one. MEMORY when none is
 * to be had; DEVICE when it fails: what was in it is told as failed. */
gpuconv_status gc_work(const gc_worker *worker, bool *began, gpuconv_error *error);

#endif
