/* The schedule of the algorithm matrix, for every backend. */
#ifndef GC_ENGINE_MATRIX_SCHEDULE_H
#define GC_ENGINE_MATRIX_SCHEDULE_H

#include "schedule.h"

#include <stdbool.h>

/* Makes the schedule for `taps` >= 1 with transforms of `transform` points, a power of two >= 4: the whole response in
 * one partition with the longest possible hop (overlap-save) where that hop is a quarter of a transform or more, else
 * partitions of half a transform. Before the first frame of a chunk, transform - hop input frames are needed. Returns
 * false if the sizes do not fit. */
static inline bool gc_matrix_schedule_make(int64_t taps, int64_t transform, gc_schedule *schedule) {
    bool made =
        gc_schedule_make(GPUCONV_ALGORITHM_OVERLAP_SAVE, taps, transform, schedule) && schedule->hop >= transform / 4;
    if (!made)
        made = gc_schedule_make(GPUCONV_ALGORITHM_PARTITIONED, taps, transform, schedule);
    schedule->algorithm = GPUCONV_ALGORITHM_MATRIX;
    return made;
}

#endif
