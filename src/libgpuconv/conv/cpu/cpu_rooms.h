/* Simulation of rooms on the threads of a pool (cpu_rooms.c). */
#ifndef GC_CPU_CPU_ROOMS_H
#define GC_CPU_CPU_ROOMS_H

#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/image_kernels.h"

#include <stdbool.h>

enum { GC_ROOM_SIZES = 48 };

/* Filters of a place, kept from one job to the next. All zero: none. */
typedef struct gc_room_filters {
    bool made;
    float taps[GC_IMAGE_TAPS], moment[GC_IMAGE_TAPS]; /* of the accumulator; times their distance from the middle */
    double rate, air[GPUCONV_ROOM_BANDS];
    struct gc_fft *fft[GC_ROOM_SIZES]; /* of 2^i points */
    float
        *band[GC_ROOM_SIZES]; /* spectra at that rate: filters of the bands, memory for as many, filters of the picks */
    int picks[GC_ROOM_SIZES], pick[GC_ROOM_SIZES][GPUCONV_ROOM_BANDS]; /* bands for walls that are alike in all bands */
} gc_room_filters;

void gc_room_filters_free(gc_room_filters *filters);

/* As gpuconv_rooms_simulate, for rooms that were checked. */
gpuconv_status gc_cpu_simulate(gc_pool *pool, gc_room_filters *filters, const gc_rooms *rooms, float *output,
                               gpuconv_error *error);

#endif
