/* The entries of gc_measure_backend, which documents them: cpu_calibrate.c, cpu_peak_rates.c, cpu_time_plan.c,
 * cpu_time_rows.c and cpu_reference.c. */
#ifndef GC_CPU_CPU_MEASURE_H
#define GC_CPU_CPU_MEASURE_H

#include "libgpuconv/engine/measure_backend.h"

gpuconv_status gc_cpu_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
gpuconv_status gc_cpu_peak_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);
gpuconv_status gc_cpu_copy(const gpuconv_config *config, int64_t bytes, int runs, bool early, double *seconds,
                           gpuconv_error *error);
gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error);
gpuconv_status gc_cpu_time_rows(const gpuconv_config *config, const gc_rows_timing *timing, gpuconv_error *error);
gpuconv_status gc_cpu_time_reference(const gpuconv_plan *plan, const gc_timing *timing, gc_reference *reference,
                                     gpuconv_error *error);

#endif
