/* The partition schedule: how a response is cut up for an algorithm. Every backend executes the same one. */
#ifndef GC_ENGINE_SCHEDULE_H
#define GC_ENGINE_SCHEDULE_H

#include "gpuconv.h"

typedef struct gc_schedule {
    gpuconv_algorithm algorithm;
    int64_t taps;       /* M, the response's length */
    int64_t transform;  /* points of one transform, a power of two; 0 for direct */
    int64_t hop;        /* output frames one transform yields; 1 for direct */
    int64_t partition;  /* taps in one partition */
    int64_t partitions; /* how many of them, the last one padded with zeros */
} gc_schedule;

/* The schedule of an algorithm (not AUTO) for `taps` >= 1 with transforms of `transform` points, a power of two >= 4:
 * direct ignores it; overlap-save needs transform > taps and hops by transform - taps + 1, from 64 on rounded down to a
 * multiple of 32 so that blocks begin aligned; partitioned cuts the response into halves of a transform and hops by
 * one. Returns false when the sizes do not fit. */
bool gc_schedule_make(gpuconv_algorithm algorithm, int64_t taps, int64_t transform, gc_schedule *schedule);

/* Input frames before the first one of a chunk that its outputs need. */
int64_t gc_schedule_history(const gc_schedule *schedule);

#endif
