/*
 * Batches: convolution of whole datasets. Four rooms, each of which includes only those before it:
 *
 *      entry     a row of a list and what it means
 *      output    the folder of a batch: its own files, shards, results.jsonl and what --resume takes from it, lists
 *      list      lists of every kind become entries
 *      run       workers convolve the entries on the cores or GPUs of this process and of the other ranks, if any
 *
 * The command and the Python package include this header.
 */
#ifndef GPUCONV_BATCH_RUN_BATCH_H
#define GPUCONV_BATCH_RUN_BATCH_H

#include "libtools/batch/list/manifest.h"
#include "libtools/batch/output/folder.h"
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
    int64_t listed;                       /* lines of the list of outputs; -1: none was written */
} gc_batch_progress;

typedef struct gc_batch {
    gc_manifest *manifest; /* entries in conflict with others are refused in it */
    const char *folder;    /* of the outputs and results.jsonl */
    bool keep_manifest;    /* write the manifest to FOLDER/manifest.csv */
    gpuconv_backend backend;
    int workers;       /* threads; 0: one per core */
    const int *device; /* CUDA device numbers; NULL: all */
    int devices;
    bool resume, fail_fast;
    int64_t shard_size;    /* entries in each tar file of outputs; 0: the outputs are files */
    const char *id_suffix; /* follows the identifiers in a list of outputs for lhotse (output/results.h) */
    bool absolute;         /* a list of outputs has absolute paths */
    const gc_ranks *ranks; /* NULL: one process */
    const volatile int *cancel;
    /* Called before the driver of the GPUs starts, by the caller's thread alone, if one GPU serves the whole batch; the
     * others may be hidden then. NULL: all of them are used. */
    void (*one_gpu)(void *context);
    void (*progress)(void *context, const gc_batch_progress *progress); /* ten times a second and at the end; or NULL */
    void (*note)(void *context, const char *text);                      /* receives messages for the user; or NULL */
    /* Receives the reasons of failures at the end, the most frequent first, with one complete message each; or NULL. */
    void (*failures)(void *context, int64_t count, const char *example);
    void *context;
} gc_batch;

/* Describes what a batch writes besides its outputs. */
gc_own_files gc_batch_own_files(const gc_batch *batch);

/* Locks the folder, processes all entries and writes the list of the outputs, if the manifest is a list of another
 * program. An entry that fails is recorded in results.jsonl and counted, and the batch continues. The batch itself
 * fails with ARGUMENT (it reads a file in its folder), FILE (the folder, its lock, or a file that is not an
 * output), DEVICE, MEMORY, STATE (another rank ended) or CANCELLED. */
gpuconv_status gc_batch_run(const gc_batch *batch, gc_batch_progress *progress, gpuconv_error *error);

#endif
