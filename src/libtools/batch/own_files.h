/* The files that a batch writes into its folder besides the outputs: their names, and which of them an entry must
 * neither write nor read. */
#ifndef GPUCONV_BATCH_OWN_FILES_H
#define GPUCONV_BATCH_OWN_FILES_H

#include "manifest.h"

#define GC_OWN_RESULTS "results.jsonl" /* results.h */
#define GC_OWN_MANIFEST "manifest.csv" /* what was picked */
#define GC_OWN_LOCK ".gpuconv-lock"    /* folder_lock.h */
#define GC_OWN_TEMPORARIES ".gpuconv-" /* with more behind it: new files (core/output_file.h), in any folder */
#define GC_OWN_TEXT "text"             /* Kaldi's: transcripts, speaker of each utterance, */
#define GC_OWN_SPEAKERS "utt2spk"
#define GC_OWN_UTTERANCES "spk2utt" /* utterances of each speaker, */
#define GC_OWN_SEGMENTS "segments"  /* part of each utterance's recording */

enum { GC_OWN_PATH = 8192, GC_OWN_SHARD = 32 };

/* What one batch writes. */
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

/* Decides whether a path has a name that new files have for a time; GC_OWN_LOCK is one, too. */
bool gc_own_is_temporary(const char *path);

/* Decides whether no output may have this path below the folder, because the batch or a later one may write a file of
 * its own there. Upper and lower case count as equal, because some file systems ignore case. */
bool gc_own_reserves(const gc_own_files *own, const char *path);

/* Decides whether the batch replaces the file with this path below the folder. */
bool gc_own_replaces(const gc_own_files *own, const char *path);

#endif
