/* The state of a running batch, shared by its files: batch_prepare.c lists the entries to do, batch_entries.c
 * distributes entries and collects outcomes, batch.c runs the threads. */
#ifndef GPUCONV_BATCH_BATCH_STATE_H
#define GPUCONV_BATCH_BATCH_STATE_H

#include "batch.h"
#include "failures.h"
#include "folder_lock.h"
#include "shard_out.h"
#include "work.h"

#include <pthread.h>

/* The entries of this process in which something was counted. */
typedef struct gc_batch_files {
    int64_t files, first; /* first: the least index of them */
} gc_batch_files;

typedef struct gc_batch_state {
    /* Constant while threads run. */
    const gc_batch *batch;
    const gc_batch_backend *backend;
    int devices, workers; /* devices 0: the CPU */
    int device[GC_BATCH_DEVICES];
    gc_responses *responses;
    gc_folder_lock *folder_lock; /* on other ranks taken with the first entries */
    gc_results *results;         /* rank 0 only */
    gc_packer *packer;           /* rank 0 only; NULL: outputs are files */
    double start_time;
    sem_t copy_permits;

    volatile int stop; /* the cancel flag of all workers: cancelled, or the batch itself failed */

    pthread_mutex_t lock; /* of the following fields */
    pthread_cond_t thread_ended;
    int64_t *todo;                      /* indices of entries; on other ranks the last portion from rank 0 */
    int64_t todo_count, todo_next;      /* todo_next: the first that no worker has taken */
    int active;                         /* threads that have not ended */
    int slotless;                       /* workers that could not get a slot */
    bool unavailable[GC_BATCH_DEVICES]; /* devices whose failure was noted */
    gc_batch_progress progress;
    gc_failures failures; /* of all ranks, on rank 0 */
    gc_batch_files clipped, not_finite, shortened;
    gc_ranks_report unsent; /* not rank 0: outcomes that rank 0 has not received */
    char *unsent_lines;
    size_t unsent_capacity;
    gpuconv_status status; /* the first error of the batch itself */
    gpuconv_error error;

    pthread_mutex_t request_lock; /* held while rank 0 is asked; taken before `lock` */
    bool exhausted;               /* rank 0 has no more entries; under request_lock */
} gc_batch_state;

bool gc_batch_has_ranks(const gc_batch_state *state);
bool gc_batch_is_first_rank(const gc_batch_state *state);

/* ---- batch_prepare.c ---- */

/* Chooses devices and the number of workers, and on rank 0 lists the entries to do. */
gpuconv_status gc_batch_prepare(gc_batch_state *state, gpuconv_error *error);

/* ---- batch_entries.c ---- */

/* Stores the first error of the batch itself and stops the workers. */
void gc_batch_fail(gc_batch_state *state, gpuconv_status status, const gpuconv_error *error);

/* Locks the folder of the batch. @return FILE, MEMORY */
gpuconv_status gc_batch_lock_folder(gc_batch_state *state, gpuconv_error *error);

/* Takes the next entry; another rank asks rank 0 for more once its list is empty. @return false: none is left */
bool gc_batch_next(gc_batch_state *state, int64_t *entry);

/* Records an outcome in results.jsonl, or for the next report to rank 0. `device` is an index into state->device. */
void gc_batch_record(gc_batch_state *state, int device, int64_t entry, const gc_outcome *outcome);

/* On another rank, sends the last outcomes and leaves the batch. */
void gc_batch_leave_ranks(gc_batch_state *state);

/* On rank 0, serves the other ranks until all have left. @return false: a message failed */
bool gc_batch_serve_ranks(gc_batch_state *state);

#endif
