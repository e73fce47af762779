/* The algorithms of the CPU backend: what planning needs of each, and the kind of its convolver. */
#ifndef GC_CPU_CPU_ALGORITHM_H
#define GC_CPU_CPU_ALGORITHM_H

#include "libgpuconv/conv/plan.h"
#include "libgpuconv/dsp/simd.h"
#include "section.h"

enum { GC_CPU_SLOTS = 3 }; /* chunks in flight, at most */

typedef struct gc_cpu_algorithm {
    gc_algorithm row; /* the first member: gc_choice.algorithm points to it */

    bool (*schedule)(int64_t taps, int64_t points, gc_schedule *schedule);

    /* Returns the frames that a chunk should have at least for `threads` threads. */
    int64_t (*chunk)(const gc_problem *problem, const gc_schedule *schedule, int threads);

    /* Returns the seconds on one thread of `total` output frames in chunks of `chunk` frames, the transforms of the
     * response and the conversion of samples included. */
    double (*seconds)(const gc_problem *problem, const gc_costs *costs, const gc_schedule *schedule, double total,
                      int64_t chunk);

    /* Returns the approximate floats of a convolver, and of the input before a chunk. */
    double (*floats)(const gc_problem *problem, const gc_schedule *schedule, int64_t chunk, int threads);

    gc_section_kind section;   /* of its convolver (section.h) */
    gc_section_direct *direct; /* of GC_SECTION_DIRECT */
} gc_cpu_algorithm;

/* The algorithms of streams: USE(name) for each, in the order of reports. */
#define GC_CPU_STREAMS(USE) USE(gc_cpu_direct) USE(gc_cpu_overlap_save) USE(gc_cpu_partitioned) USE(gc_cpu_dense)

#define GC_CPU_DECLARE(name) extern const gc_cpu_algorithm name;
GC_CPU_STREAMS(GC_CPU_DECLARE)
#undef GC_CPU_DECLARE
extern const gc_algorithm gc_cpu_levels;

/* The algorithms of streams, and that of real time (cpu_levels.c); NULL ends the array. */
extern const gc_algorithm *const gc_cpu_algorithms[];

/* Returns the algorithm of a choice for the CPU. */
static inline const gc_cpu_algorithm *gc_cpu_algorithm_of(const gc_choice *choice) {
    return (const gc_cpu_algorithm *)choice->algorithm;
}

/* ---- What the rows share (cpu_cost.c) ---------------------------------------------------------------------------- */

/* The memory that most algorithms may take: bytes for a transform size, or times the bytes of the smallest size. */
#define GC_CPU_THRIFT 72e6
#define GC_CPU_EXCESS 1.5

#define GC_CPU_ROW(id, name, least, most, thrift, excess)                                                              \
    { id, name, GC_STREAM, least, most, thrift, excess, gc_cpu_fits, gc_cpu_cost, gc_cpu_settle, NULL }

/* The entries of a row. `cost` and the schedule do not depend on the number of threads, and are the same for all inputs
 * of at least 2^23 frames or of unknown length. */
bool gc_cpu_fits(const gc_problem *problem, const gc_device *device, int64_t points, int form, gc_choice *choice);
void gc_cpu_cost(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);
void gc_cpu_settle(const gc_problem *problem, const gc_device *device, const gc_costs *costs, gc_choice *choice);

/* Returns the seconds of one FFT of a real block. A level costs more if the block exceeds the second-level cache. */
double gc_cpu_fft_seconds(const gc_costs *costs, int64_t points);

/* Returns the seconds in which the samples of `total` frames are converted, interleaved and copied. */
double gc_cpu_copy_seconds(const gc_problem *problem, const gc_costs *costs, double total);

/* Returns the seconds of the products of one block with all routes, one bin at a time; `streamed`: the share of spectra
 * that is read from memory beyond the caches. */
double gc_cpu_product_seconds(const gc_problem *problem, const gc_costs *costs, const gc_schedule *schedule,
                              double streamed);

#endif
