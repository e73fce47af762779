/*
 * The folder of a batch. What the batch reads lies outside of it, and what it writes lies inside, so that no output is
 * an input, whatever the order of processing; outputs never have the name of a file that the batch itself writes there.
 * Two batches must not write into one folder at the same time: the file FOLDER/.gpuconv-lock names the process; the
 * lock itself (core/files.h) ends with the process, also on a network file system, so that a file that a killed
 * batch has left excludes no other batch.
 *
 *      byte 0     locked exclusively by the first rank, for as long as the batch writes
 *      byte 1     locked exclusively by the first rank while it takes the lock, then shared by all ranks: the ranks
 *                 that still write after the first one was killed keep the next batch out
 */
#ifndef GPUCONV_BATCH_OUTPUT_FOLDER_H
#define GPUCONV_BATCH_OUTPUT_FOLDER_H

#include "gpuconv.h"
#include "libtools/batch/entry/entry.h"

#define GC_OWN_RESULTS "results.jsonl" /* results.h */
#define GC_OWN_MANIFEST "manifest.csv" /* the picked rows */
#define GC_OWN_LOCK ".gpuconv-lock"    /* below */
#define GC_OWN_TEMPORARIES ".gpuconv-" /* with more behind it: new files (core/files.h), in any folder */
#define GC_OWN_TEXT "text"             /* Kaldi's: transcripts, speaker of each utterance, */
#define GC_OWN_SPEAKERS "utt2spk"
#define GC_OWN_UTTERANCES "spk2utt" /* utterances of each speaker, */
#define GC_OWN_SEGMENTS "segments"  /* part of each utterance's recording */

enum { GC_OWN_PATH = 8192, GC_OWN_SHARD = 32 };

/* The files that a batch writes besides its outputs. */
typedef struct gc_own_files {
    const char *folder;
    bool manifest;      /* GC_OWN_MANIFEST */
    bool resume;        /* GC_OWN_RESULTS is continued, not replaced */
    gc_list_kind kind;  /* the list of the outputs */
    int64_t shard_size; /* 0: no shards */
    int64_t entries;
} gc_own_files;

/* Returns the name of the list of outputs; NULL: the kind has none. */
const char *gc_own_list(gc_list_kind kind);

/* Writes the name of shard `index`. */
void gc_own_shard(int64_t index, char name[GC_OWN_SHARD]);

/* Writes "FOLDER/NAME". Fails with FILE: the path is too long. */
gpuconv_status gc_own_path(const char *folder, const char *name, char path[GC_OWN_PATH], gpuconv_error *error);

typedef struct gc_folder_lock gc_folder_lock;

/* Locks a folder that exists: for a batch, or for a further rank of the batch that holds the lock. *unsupported: the
 * file system has no locks (an errno value), and the folder is not locked. Fails with FILE (another batch has the lock)
 * or MEMORY. */
gpuconv_status gc_folder_lock_new(const char *folder, bool first_rank, gc_folder_lock **lock, int *unsupported,
                                  gpuconv_error *error);

/* Releases the lock; the first rank removes the file. */
void gc_folder_lock_free(gc_folder_lock *lock);

/* Checks that no input, response (also in series, or named by a matrix), noise or list lies in the folder of the
 * outputs, whatever links lead to it, but for lists that an earlier batch wrote there and this one does not replace.
 * Refuses entries whose output has the name of a file of the batch itself, or lies behind a link within the folder.
 * Names of outputs that differ only in case count as different, also on file systems that ignore case.
 *
 * @param threads  for access to the file system
 * @return ARGUMENT (a file that is read lies in the folder), MEMORY, CANCELLED (the thread's flag, core/cancel.h, is
 *         raised: no entry is refused) */
gpuconv_status gc_refuse_conflicts(gc_manifest *manifest, const gc_own_files *own, int threads, gpuconv_error *error);

#endif
