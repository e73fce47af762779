/*
 * Many processes of one batch. Rank 0 hands out entries and keeps the list of results; the others ask it, bringing the
 * lines of what they have done. What carries the messages is a module of its own, loaded only where a launcher of
 * parallel programs started this process, so that nobody else needs its libraries.
 */
#ifndef GPUCONV_BATCH_RANKS_H
#define GPUCONV_BATCH_RANKS_H

#include "gpuconv.h"

enum { GC_RANKS_ENTRIES = 64 }; /* handed out at a time, at most */

/* What a rank has done since it asked before. */
typedef struct gc_ranks_news {
    int64_t done, failed, clipped;
    double audio;
    int leaving; /* it will not ask again */
    const char *lines;
    size_t bytes;
} gc_ranks_news;

typedef struct gc_ranks {
    int rank, size;

    /* Rank 0, from one thread: answers until every other rank has left. take fills in entries and gives their number,
     * 0 when there are no more; accept takes what a rank has done. False: a message failed. */
    bool (*serve)(int (*take)(void *context, int64_t *entries),
                  void (*accept)(void *context, const gc_ranks_news *news), void *context);

    /* Another rank, one thread at a time: the number of entries that it is to do, 0 when there are no more, -1 when a
     * message failed. */
    int (*ask)(const gc_ranks_news *news, int64_t *entries);

    void (*end)(void);
} gc_ranks;

/* The name under which a module has its gc_ranks_start: fills in *ranks; false: not started, `why` says so. */
#define GC_RANKS_START "gpuconv_ranks_start"
typedef bool gc_ranks_start(gc_ranks *ranks, char *why, size_t room);

/* *ranks is NULL when this process is alone. UNSUPPORTED when it is not and the module is missing or does not start. */
gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error);

#endif
