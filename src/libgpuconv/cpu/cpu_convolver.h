/* The convolvers of the CPU backend, one per algorithm. A convolver processes chunks of planar floats. */
#ifndef GC_CPU_CPU_CONVOLVER_H
#define GC_CPU_CPU_CONVOLVER_H

#include "libgpuconv/core/pool.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/engine/measure_backend.h"

typedef struct gc_convolver gc_convolver; /* each algorithm defines its own */

typedef struct gc_convolver_kind {
    /* Returns a convolver; NULL if there is too little memory or the thread's cancel flag is set. */
    gc_convolver *(*new)(const gpuconv_plan *plan);

    /* Returns the number of earlier input frames that must be readable before in[channel][0]. */
    int64_t (*history)(const gc_schedule *schedule);

    /* Computes the first `frames` output frames of a chunk, 1..plan->chunk. in[channel] holds plan->chunk frames, with
     * zeros behind the end of the input. */
    void (*run)(gc_convolver *convolver, gc_pool *pool, float *const *in, float *const *out, int64_t frames);

    /* Forgets all earlier chunks. */
    void (*reset)(gc_convolver *convolver);
    void (*free)(gc_convolver *convolver);
} gc_convolver_kind;

extern const gc_convolver_kind gc_cpu_direct, gc_cpu_overlap_save, gc_cpu_partitioned;

/* Returns the convolver of an algorithm, which must not be AUTO. */
const gc_convolver_kind *gc_cpu_kind(gpuconv_algorithm algorithm);

/* The entries of gc_measure_backend, which documents them: cpu_calibrate.c, cpu_peak_rates.c, cpu_time_plan.c and
 * cpu_reference.c. */
gpuconv_status gc_cpu_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
gpuconv_status gc_cpu_peak_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);
gpuconv_status gc_cpu_copy(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error);
gpuconv_status gc_cpu_time_plan(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                                int runs, double *seconds, gpuconv_error *error);
gpuconv_status gc_cpu_time_reference(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error);

#endif
