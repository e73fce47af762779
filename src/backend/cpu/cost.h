/* What a convolution costs on the CPU, and the sizes that cost least. */
#ifndef GC_BACKEND_CPU_COST_H
#define GC_BACKEND_CPU_COST_H

#include "../../engine/backend.h"

/* Fills plan->schedule, chunk and predicted: see gc_backend.plan. */
gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

/* The processor's name as the system gives it, or "CPU". */
void gc_cpu_name(char *name, size_t size);

#endif
