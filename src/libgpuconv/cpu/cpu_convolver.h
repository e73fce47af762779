/* What the CPU backend runs on a chunk: one convolver an algorithm, over planar floats. */
#ifndef GC_CPU_CPU_CONVOLVER_H
#define GC_CPU_CPU_CONVOLVER_H

#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/engine/measure_backend.h"

typedef struct gc_convolver gc_convolver;

typedef struct gc_convolver_kind {
    gc_convolver *(*new)(const gpuconv_plan *plan); /* NULL: no memory */

    /* Input frames that must be readable before in[channel][0]. */
    int64_t (*history)(const gc_schedule *schedule);

    /* The first `frames` outputs of a chunk, 1..plan->chunk; in[channel] holds a whole chunk, zeros beyond its end. */
    void (*run)(gc_convolver *convolver, gc_pool *pool, float *const *in, float *const *out, int64_t frames);

    void (*reset)(gc_convolver *convolver);
    void (*free)(gc_convolver *convolver);
} gc_convolver_kind;

extern const gc_convolver_kind gc_cpu_direct, gc_cpu_overlap_save, gc_cpu_partitioned;

const gc_convolver_kind *gc_cpu_kind(gpuconv_algorithm algorithm);

/* calibrate.c, trial.c, peer.c: see gc_backend. */
gpuconv_status gc_cpu_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
gpuconv_status gc_cpu_peak_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);
gpuconv_status gc_cpu_copy(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error);
gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                                int runs, double *seconds, gpuconv_error *error);
gpuconv_status gc_cpu_time_reference(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error);

#endif
