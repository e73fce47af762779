/* The defaults of a job. */
#include "libgpuconv/core/sized_struct.h"

#include <math.h>

void gpuconv_job_init(gpuconv_job *job, size_t size) {
    const gpuconv_job defaults = {.tail = HUGE_VAL};
    gc_sized_struct_init(job, size, &defaults, sizeof defaults);
}
