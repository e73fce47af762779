/*
 * Lock of the folder of a batch: two batches must not write into one folder at the same time. The file
 * FOLDER/.gpuconv-lock names the process; the lock itself (core/file_lock.h) ends with the process, also on a network
 * file system, so that a file that a killed batch has left excludes no other batch.
 *
 *      byte 0     locked exclusively by the first rank, for as long as the batch writes
 *      byte 1     locked exclusively by the first rank while it takes the lock, then shared by all ranks: the ranks
 * that still write after the first one was killed keep the next batch out
 */
#ifndef GPUCONV_BATCH_FOLDER_LOCK_H
#define GPUCONV_BATCH_FOLDER_LOCK_H

#include "gpuconv.h"

typedef struct gc_folder_lock gc_folder_lock;

/* Locks a folder that exists: for a batch, or for a further rank of the batch that holds the lock. *unsupported: the
 * file system has no locks (an errno value), and the folder is not locked. Fails with FILE (another batch has the lock)
 * or MEMORY. */
gpuconv_status gc_folder_lock_new(const char *folder, bool first_rank, gc_folder_lock **lock, int *unsupported,
                                  gpuconv_error *error);

/* Releases the lock; the first rank removes the file. */
void gc_folder_lock_free(gc_folder_lock *lock);

#endif
