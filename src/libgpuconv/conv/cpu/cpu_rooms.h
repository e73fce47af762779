/* Simulation of rooms on the threads of a pool (cpu_rooms.c). */
#ifndef GC_CPU_CPU_ROOMS_H
#define GC_CPU_CPU_ROOMS_H

#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/pool.h"

/* As gpuconv_rooms_simulate, for rooms that were checked. */
gpuconv_status gc_cpu_simulate(gc_pool *pool, const gc_rooms *rooms, float *output, gpuconv_error *error);

#endif
