/*
 * The time of a variant: warmed up until it no longer falls, then the median of at least ten samples with their spread,
 * once with whatever the run before left in the cache and once with the cache flushed before each sample.
 */
#ifndef GPULAB_MEASURE_H
#define GPULAB_MEASURE_H

#include "device.h"
#include "gpuconv.h"

typedef struct gc_lab_times {
    int n, row;                   /* samples, and launches in each */
    double median, spread, least; /* seconds of one launch; spread: half of what lies between least and most */
    double cold;                  /* median with the cache flushed; 0: not measured */
} gc_lab_times;

/* device: NULL for variants on the CPU. */
gpuconv_status gc_lab_measure(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device,
                              gc_lab_times *timing, gpuconv_error *error);

#endif
