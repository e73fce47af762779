/*
 * Ranks: several processes that share a batch. Rank 0 distributes the entries and writes results.jsonl; the other ranks
 * request entries and report what they have done. The messages are sent by a module that is loaded only if a launcher
 * of parallel programs (mpirun, srun) started this process, so that the command itself does not depend on MPI.
 */
#ifndef GPUCONV_BATCH_RUN_RANKS_H
#define GPUCONV_BATCH_RUN_RANKS_H

#include "gpuconv.h"

enum { GC_RANKS_ENTRIES = 64 }; /* in one answer, at most */

/* The work of a rank since its last report. */
typedef struct gc_ranks_report {
    int64_t done, failed, clipped; /* entries; clipped: samples */
    double audio;                  /* seconds of input */
    int leaving;                   /* this is the rank's last report; it is not answered */
    const char *lines;             /* of results.jsonl */
    size_t bytes;
} gc_ranks_report;

typedef struct gc_ranks {
    int rank, size;

    /* Rank 0, one thread: answers reports until every other rank has left. `take` fills in entries and returns their
     * number, 0 if none are left; `accept` stores what a rank has done. @return false: a message failed */
    bool (*serve)(int (*take)(void *context, int64_t *entries),
                  void (*accept)(void *context, const gc_ranks_report *report), void *context);

    /* Other ranks, one thread at a time: sends a report and fills in the entries to do. @return their number, 0 if none
     * are left; -1 if a message failed */
    int (*request)(const gc_ranks_report *report, int64_t *entries);

    /* Ends the communication. `in_order`: this rank has served or left; otherwise, or if a message failed, it ends all
     * ranks, because one of them may wait for this one, and this process exits with `status`. */
    void (*end)(bool in_order, int status);
} gc_ranks;

/* The function that the module exports under this name: fills in *ranks. @return false: not started, with the reason in
 * `why`, a text of `room` bytes */
#define GC_RANKS_START "gpuconv_ranks_start"
typedef bool gc_ranks_start(gc_ranks *ranks, char *why, size_t room);

/* Loads the module if a launcher started this process, else sets *ranks to NULL. @return UNSUPPORTED if the module is
 * missing or does not start */
gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error);

#endif
