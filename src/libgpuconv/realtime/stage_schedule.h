/*
 * The partition of a response for real-time convolution: a head that is convolved directly, followed by stages of
 * uniform partitions whose length grows from stage to stage (non-uniform partitioning).
 */
#ifndef GC_REALTIME_STAGE_SCHEDULE_H
#define GC_REALTIME_STAGE_SCHEDULE_H

#include "libgpuconv/ir/object.h"

#include <stdbool.h>

enum { GC_RT_MAX_STAGES = 10, GC_RT_MIN_HOP = 256, GC_RT_MAX_HOP = 1 << 16 };

typedef struct gc_rt_stage_plan {
    int64_t hop;        /* frames of a partition; a power of two */
    int64_t offset;     /* taps before the stage: 2 * hop if a worker computes it, which gives it one hop of time; hop
                           or 2 * hop if the callback does */
    int64_t partitions; /* up to the next stage, or to the end of the response */
    double seconds;     /* predicted time of one block */
    bool in_callback;   /* a block takes so little time that the callback computes it, and no worker has to wake up */
} gc_rt_stage_plan;

typedef struct gc_rt_schedule {
    int64_t zeros;       /* taps of silence at the beginning of the response; the direct convolution skips them */
    int64_t head;        /* taps that are convolved without delay */
    int64_t head_points; /* of the transform for calls of at least head_frames frames; 0: the head is always direct */
    int64_t head_frames;
    bool dense; /* the stages compute matrix products */
    int stages;
    gc_rt_stage_plan stage[GC_RT_MAX_STAGES];
    double load; /* predicted seconds of one core per frame */
} gc_rt_schedule;

/* The calls that a convolver serves. */
typedef struct gc_rt_calls {
    int64_t block; /* frames of the longest call that has to be served in time */
    double rate;   /* frames a second */
    double share;  /* of the time that the callback may spend on a stage: 1, or less for one of many convolvers */
} gc_rt_calls;

/* Finds the schedule with the least predicted load, from the costs measured on this machine (or the built-in ones).
 * No partition is shorter than the longest call. */
void gc_rt_schedule_make(const gpuconv_ir *ir, const gc_rt_calls *calls, gc_rt_schedule *schedule);

#endif
