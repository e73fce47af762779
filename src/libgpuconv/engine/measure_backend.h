/*
 * What can be measured of a backend: the rates of its processor, and the time of a plan. Benchmarks and calibration use
 * it; no job does.
 */
#ifndef GC_ENGINE_MEASURE_BACKEND_H
#define GC_ENGINE_MEASURE_BACKEND_H

#include "costs.h"
#include "plan.h"

/* Highest measured rates of a processor. */
typedef struct gc_peak_rates {
    double arithmetic;                           /* operations a second of a multiply-add loop, two each */
    double copy;                                 /* bytes read and written a second, of data larger than any cache */
    double launch;                               /* seconds to start an empty piece of work */
    double to_device, from_device, both_at_once; /* bytes a second each way; 0: there is no bus */
} gc_peak_rates;

typedef struct gc_measure_backend {
    /* Measures the peak rates of the processor that `config` names. DEVICE, MEMORY. */
    gpuconv_status (*peak_rates)(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);

    /* Copies so many bytes within the memory where the backend computes, as seconds[run]: no convolution of them is
     * faster. DEVICE, MEMORY. */
    gpuconv_status (*copy)(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error);

    /* Convolves planar samples that lie where the backend computes, without transfers, as seconds[run] after a warm-up.
     * out[channel] gets `frames` outputs, NaN where none was written. DEVICE, MEMORY. */
    gpuconv_status (*time_plan)(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                                int runs, double *seconds, gpuconv_error *error);

    /* Does the same with the library that is commonly used on the processor (FFTW, cuFFT), at its best size; writes its
     * name. UNSUPPORTED where it is not installed. */
    gpuconv_status (*time_reference)(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error);

    /* Fills the processor's part of *costs, and its name, in a few seconds. DEVICE, MEMORY. */
    gpuconv_status (*calibrate)(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
} gc_measure_backend;

/* The tables of the CPU and of CUDA; engine/backends.h finds those that this build has. */
extern const gc_measure_backend gc_measure_backend_cpu, gc_measure_backend_cuda;

#endif
