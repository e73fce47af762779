/* How a response is cut up for playing: a head that is convolved directly, and stages of growing partitions behind it.
 */
#ifndef GC_REALTIME_STAGE_SCHEDULE_H
#define GC_REALTIME_STAGE_SCHEDULE_H

#include "libgpuconv/ir/object.h"

enum { GC_RT_STAGES = 10, GC_RT_HOP_LEAST = 256, GC_RT_HOP_MOST = 1 << 16 };

typedef struct gc_rt_stage_plan {
    int64_t hop;        /* frames of a partition, a power of two */
    int64_t offset;     /* taps before it: twice its hop, so that a worker has a hop's time; its hop if done `here` */
    int64_t partitions; /* up to the next stage, or the response's end */
    double seconds;     /* of one block of it, predicted */
    bool here;          /* so little that the callback does it itself when a block is complete, and no worker wakes */
} gc_rt_stage_plan;

typedef struct gc_rt_schedule {
    int64_t head; /* taps done directly, for every frame at once */
    int stages;
    gc_rt_stage_plan stage[GC_RT_STAGES];
    double load; /* seconds of one core a frame, predicted */
} gc_rt_schedule;

/* Frames of silence that it begins with, which cost nothing. */
int64_t gc_rt_zeros(const gpuconv_ir *ir);

/* The cheapest by the costs measured on this machine (or built in) whose smallest partition is no shorter than `block`
 * frames, the longest call that is to be served in time at `rate` frames a second. */
void gc_rt_schedule_make(const gpuconv_ir *ir, int64_t block, double rate, gc_rt_schedule *schedule);

#endif
