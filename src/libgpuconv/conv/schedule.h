/* The partition schedule: how a response is cut up for an algorithm. Every backend executes the same one. */
#ifndef GC_CONV_SCHEDULE_H
#define GC_CONV_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gc_schedule {
    int64_t taps;       /* M, the response's length */
    int64_t transform;  /* points of one transform, a power of two; 0 for direct */
    int64_t hop;        /* output frames one transform yields; 1 for direct */
    int64_t partition;  /* taps in one partition */
    int64_t partitions; /* how many of them, the last one padded with zeros */
} gc_schedule;

/* A response in levels of partitions with growing hops. */
enum { GC_LEVELS_MAX = 4 /* on a GPU */, GC_CPU_LEVELS_MAX = 10 };

typedef struct gc_level {
    int64_t hop, first_tap; /* of the first level: the block on a GPU, 1 on the CPU; 0 */
    int64_t partitions;     /* of hop taps each, from first_tap on */
    bool at_once;           /* on the CPU: a block takes so little time that the callback computes it, and no worker has
                               to wake up */
} gc_level;

typedef struct gc_levels {
    int count;
    gc_level level[GC_CPU_LEVELS_MAX];
    bool dense; /* on the CPU: the levels behind the first one compute products of matrices */
} gc_levels;

/* The schedules for `taps` >= 1. `transform`: points, a power of two >= 4. Return false when the sizes do not fit. */

/* Direct convolution. `transform` is ignored. */
bool gc_schedule_direct(int64_t taps, int64_t transform, gc_schedule *schedule);

/* One partition: needs transform > taps and hops by transform - taps + 1, from 64 on rounded down to a multiple of 32
 * so that blocks begin aligned. */
bool gc_schedule_overlap_save(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Cuts the response into partitions of half a transform and hops by one partition. */
bool gc_schedule_partitioned(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Dense matrices: one partition where its hop is a quarter of a transform or more, else partitions of half a transform.
 */
bool gc_schedule_dense(int64_t taps, int64_t transform, gc_schedule *schedule);

/* Returns the input frames before the first one of a block that the block reads. */
int64_t gc_schedule_overlap(const gc_schedule *schedule);

/* Returns the input frames before the first one of a chunk that its outputs need. */
int64_t gc_schedule_history(const gc_schedule *schedule);

#endif
