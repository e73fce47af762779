/* What a convolution costs on the CPU, and the sizes that cost least. */
#ifndef GC_CPU_CPU_COST_H
#define GC_CPU_CPU_COST_H

#include "libgpuconv/engine/costs.h"
#include "libgpuconv/engine/measure_backend.h"

/* Fills plan->schedule, chunk and predicted: see gc_backend.plan. */
gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

/* The same by costs that are at hand, for `frames` frames (-1: unknown); of the plan it reads ir and device.threads.
 * schedule and compared do not depend on the threads, and are the same for every input of 2^23 frames and more and of
 * unknown length. */
gpuconv_status gc_cpu_plan_by(const gc_costs *costs, gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t frames,
                              gpuconv_error *error);

#endif
