/*
 * Measures the time of a variant: warm-up until the time no longer falls, then the median of at least ten samples with
 * their spread. A second measurement flushes the L2 cache before each sample.
 */
#ifndef GPULAB_MEASURE_H
#define GPULAB_MEASURE_H

#include "device.h"
#include "gpuconv.h"

/* Times are seconds per launch. */
typedef struct gc_lab_timing_result {
    int samples, launches; /* launches: consecutive launches in each sample */
    double median, least;
    double spread; /* half the difference between the longest and the shortest sample */
    double cold;   /* median with a flushed L2 cache; 0: not measured */
} gc_lab_timing_result;

/* Measures a variant. `device` is NULL for variants on the CPU. Fails with DEVICE if a launch fails. */
gpuconv_status gc_lab_measure(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device,
                              gc_lab_timing_result *timing, gpuconv_error *error);

#endif
