/* Measurements of a backend: peak rates of its processor, times of plans, rows and batches on samples that are in its
 * memory, the FFT library in common use on it, and the costs that plans use. Benchmarks and the calibration use them;
 * nothing that convolves does. */
#ifndef GC_MEASURE_MEASURE_H
#define GC_MEASURE_MEASURE_H

#include "gpuconv_arrays.h"
#include "libgpuconv/conv/backend.h"

/* Highest measured rates of a processor. */
typedef struct gc_peak_rates {
    double arithmetic; /* FP32 operations per second of a multiply-add loop; a multiply-add counts as two */
    double copy;       /* bytes read plus bytes written per second, of data larger than any cache */
    double launch;     /* seconds to start an empty kernel or job */
    double to_device, from_device, both_at_once; /* bytes per second in each direction; 0: there is no bus */
} gc_peak_rates;

/* A convolution to time: planar samples in host memory, and where the times go. */
typedef struct gc_timing {
    const float *const *in; /* per input: `frames` samples */
    float *const *out;      /* per output: receives `frames` samples, NaN where the convolution wrote nothing */
    int64_t frames;
    int runs;        /* at most GC_TIMING_RUNS_MAX */
    double *seconds; /* receives the time of each run */
} gc_timing;

enum { GC_TIMING_RUNS_MAX = 64 };

/* Rows of a type of sample: `rows` of `frames`, of which the first `distinct` are given; row i has the samples of row i
 * mod distinct. */
typedef struct gc_timed_rows {
    const void *samples; /* distinct x frames, in host memory */
    int64_t rows, distinct, frames;
} gc_timed_rows;

/* A convolution of rows to time (gpuconv_arrays.h): row i with response i mod response.rows or, with a hop, with a
 * response for each block, as many frames out as in. */
typedef struct gc_rows_timing {
    gpuconv_sample_type type;
    gc_timed_rows signal, response;
    int64_t hop;
    const int64_t *checked; /* numbers of rows whose output is wanted */
    int checks;
    void *output; /* receives checks x signal.frames samples */
    int runs;     /* at most GC_TIMING_RUNS_MAX */
    double *seconds;
} gc_rows_timing;

/* Returns the job of three arrays at these addresses. */
static inline gpuconv_arrays_job gc_timed_job(const gc_rows_timing *t, void *signal, void *response, void *output) {
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    const gc_timed_rows *x = &t->signal, *h = &t->response;
    job.signal = (gpuconv_rows){signal, t->type, x->rows, x->frames, x->frames, 1, NULL, NULL};
    job.response = (gpuconv_rows){response, t->type, h->rows, h->frames, h->frames, 1, NULL, NULL};
    job.output = job.signal;
    job.output.data = output;
    job.hop = t->hop;
    return job;
}

/* A batch to time on several devices at once, each signal with its own response. */
typedef struct gc_batch_timing {
    const int *device;
    int devices;
    int64_t signals; /* per device */
    int64_t frames, taps;
    int runs;
    double *seconds; /* receives the time of one batch in each run, as a share of several queued together */
} gc_batch_timing;

/* What was timed of the FFT library of a processor. */
typedef struct gc_reference {
    char name[64]; /* library, form and transform size */
    /* Seconds of the transforms alone, by run; the first is NaN if they were not measured. */
    double transforms[GC_TIMING_RUNS_MAX];
} gc_reference;

/* Measures the peak rates of the processor that `config` names. Fails with DEVICE or MEMORY. */
typedef gpuconv_status gc_measure_rates(const gpuconv_config *config, gc_peak_rates *rates, gpuconv_error *error);

/* Measures seconds[run] of a copy of `bytes` bytes within the backend's memory, which bounds the speed of any
 * convolution of as many bytes. early: each copy starts before the previous one has ended, as convolutions do; fails
 * with UNSUPPORTED where the processor cannot. Fails with DEVICE or MEMORY. */
typedef gpuconv_status gc_measure_copy(const gpuconv_config *config, int64_t bytes, int runs, bool early,
                                       double *seconds, gpuconv_error *error);

/* Measures the runs of a convolution, after a warm-up, on samples that are already in the backend's memory. Fails with
 * DEVICE or MEMORY. */
typedef gpuconv_status gc_measure_plan(const gpuconv_plan *plan, const gc_timing *timing, gpuconv_error *error);

/* Measures the same with the FFT library in common use on the processor (FFTW, cuFFT) at its fastest transform size.
 * Fails with UNSUPPORTED if the library is not installed. */
typedef gpuconv_status gc_measure_reference(const gpuconv_plan *plan, const gc_timing *timing, gc_reference *reference,
                                            gpuconv_error *error);

/* Measures the runs of a convolution of rows that are already in the backend's memory. Fails with DEVICE, MEMORY or any
 * status of gpuconv_arrays_run. */
typedef gpuconv_status gc_measure_rows(const gpuconv_config *config, const gc_rows_timing *timing,
                                       gpuconv_error *error);

/* Measures the processor's part of *costs and writes its name, within a few seconds. Fails with DEVICE or MEMORY. */
typedef gpuconv_status gc_measure_costs(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error);

/* Measures a batch from device memory to device memory. *error_db is the relative RMS error in dB over all frames,
 * within 6 dB (dsp/point_sums.h). Fails with DEVICE or MEMORY. */
typedef gpuconv_status gc_measure_batch(const gc_batch_timing *timing, double *error_db, gpuconv_error *error);

typedef struct gc_measures {
    gc_measure_rates *peak_rates;
    gc_measure_copy *copy;
    gc_measure_plan *time_plan;
    gc_measure_reference *time_reference;
    gc_measure_rows *time_rows;
    gc_measure_batch *time_batch; /* NULL on the CPU */
    gc_measure_costs *calibrate;
} gc_measures;

/* Returns the measurements of a backend; NULL if there is no module of it. */
const gc_measures *gc_measures_find(gpuconv_backend id);

gc_measure_rates gc_cpu_peak_rates, gc_cuda_peak_rates;
gc_measure_copy gc_cpu_copy, gc_cuda_copy;
gc_measure_plan gc_cpu_time_plan, gc_cuda_time_plan;
gc_measure_reference gc_cpu_time_reference, gc_cuda_time_reference;
gc_measure_rows gc_cpu_time_rows, gc_cuda_time_rows;
gc_measure_batch gc_cuda_time_batch;
gc_measure_costs gc_cpu_calibrate, gc_cuda_calibrate;

#endif
