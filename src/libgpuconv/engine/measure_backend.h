/* The backend interface that measures: peak rates of the processor and the time of a plan. Benchmarks and calibration
 * use it; convolution jobs do not. */
#ifndef GC_ENGINE_MEASURE_BACKEND_H
#define GC_ENGINE_MEASURE_BACKEND_H

#include "costs.h"
#include "plan.h"

/* Highest measured rates of a processor. */
typedef struct gc_peak_rates {
    double arithmetic; /* FP32 operations per second of a multiply-add loop; a multiply-add counts as two */
    double copy;       /* bytes read plus bytes written per second, of data larger than any cache */
    double launch;     /* seconds to start an empty kernel or job */
    double to_device, from_device, both_at_once; /* bytes per second in each direction; 0: there is no bus */
} gc_peak_rates;

typedef struct gc_measure_backend {
    /* Measures the peak rates of the processor that `config` names. Fails with DEVICE or MEMORY. */
    gpuconv_status (*peak_rates)(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);

    /* Measures seconds[run] of a copy of `bytes` bytes within the backend's memory, which bounds the speed of any
     * convolution of as many bytes. Fails with DEVICE or MEMORY. */
    gpuconv_status (*copy)(const gpuconv_config *config, int64_t bytes, int runs, double *seconds,
                           gpuconv_error *error);

    /* Measures seconds[run], after a warm-up, of a convolution of planar samples that already lie in the backend's
     * memory. out[channel] receives `frames` frames, NaN where the convolution wrote nothing. Fails with DEVICE or
     * MEMORY. */
    gpuconv_status (*time_plan)(const gpuconv_plan *plan, const float *const *in, int64_t frames, float *const *out,
                                int runs, double *seconds, gpuconv_error *error);

    /* Measures the same with the FFT library in common use on the processor (FFTW, cuFFT) at its fastest transform
     * size, and writes a description into `name`. Fails with UNSUPPORTED if the library is not installed. */
    gpuconv_status (*time_reference)(const gpuconv_plan *plan, const float *const *in, int64_t frames,
                                     float *const *out, int runs, double *seconds, char name[64], gpuconv_error *error);

    /* Measures the processor's part of *costs and writes its name, within a few seconds. Fails with DEVICE or MEMORY.
     */
    gpuconv_status (*calibrate)(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);
} gc_measure_backend;

/* Use gc_backend_find (backends.h): a build may lack CUDA. */
extern const gc_measure_backend gc_measure_backend_cpu, gc_measure_backend_cuda;

#endif
