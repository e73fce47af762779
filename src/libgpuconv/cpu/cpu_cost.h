/* The CPU's cost model: predicts the time of a convolution and chooses the sizes with the lowest one. */
#ifndef GC_CPU_CPU_COST_H
#define GC_CPU_CPU_COST_H

#include "libgpuconv/engine/costs.h"
#include "libgpuconv/engine/measure_backend.h"

/* Implements gc_backend.plan, except for plan->slots. */
gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

/* Does the same with the given costs, for `frames` frames (-1: unknown). Reads only ir and device.threads of the plan.
 * plan->schedule and plan->cost do not depend on the number of threads, and are the same for all inputs of at least
 * 2^23 frames or of unknown length. */
gpuconv_status gc_cpu_plan_by(const gc_costs *costs, gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t frames,
                              gpuconv_error *error);

/* Returns the seconds of one FFT of a real block. A level costs more if the block exceeds the second-level cache. */
double gc_cpu_fft_seconds(const gc_costs *costs, int64_t points);

#endif
