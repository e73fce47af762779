/* Measurements of a backend: peak rates of its processor, times of plans and rows on samples that are in its memory,
 * the FFT library in common use on it, and the costs that plans use. Benchmarks and the calibration use them; nothing
 * that convolves does. */
#ifndef GC_MEASURE_MEASURE_H
#define GC_MEASURE_MEASURE_H

#include "gpuconv_arrays.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/memory.h"

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

/* An array of a job of rows (gpuconv_arrays.h) to time. */
typedef struct gc_timed_array {
    int64_t elements, period; /* sample i is samples[i % period]; 0 elements: the job does not have the array */
    const void *samples;      /* `period` samples in host memory; NULL: the job writes the array */
} gc_timed_array;

/* Samples of a written array that are wanted. */
typedef struct gc_timed_part {
    int array; /* of gc_rows_timing.array */
    int64_t first, count;
    void *to;
} gc_timed_part;

/* A job of rows to time, without gates. */
typedef struct gc_rows_timing {
    gpuconv_arrays_job job; /* `data` of its arrays is ignored */
    /* NULL, or packed rows, whose `offsets` are in host memory: a run sorts them and has the jobs of every class; the
     * longest sequence has at least as many frames as the response has taps. */
    const gpuconv_sequences *sequences;
    bool in_step; /* of training: a convolution leaves the transforms that it can leave, both gradients take them */
    gc_timed_array array[GC_JOB_ARRAYS]; /* in the order of gc_job_arrays */
    const gc_timed_part *part;           /* is filled in after the runs, NaN where the job wrote nothing */
    int parts;
    int runs; /* at most GC_TIMING_RUNS_MAX */
    double *seconds;
} gc_rows_timing;

/* Returns an array of a job, by its place in gc_job_arrays. */
static inline gpuconv_rows *gc_timed_rows(gpuconv_arrays_job *job, int array) {
    gpuconv_rows *const all[GC_JOB_ARRAYS] = {&job->signal, &job->output, &job->response, &job->signal_gradient,
                                              &job->response_gradient};
    return all[array];
}

/* Returns the numbers of the table of gpuconv_sequences_sort. */
static inline int64_t gc_timed_table(const gpuconv_sequences *s) {
    return s ? s->classes * 2 * s->sequences * s->channels : 0;
}

/* Returns how many jobs a run consists of. */
static inline int gc_timed_jobs(const gc_rows_timing *t) {
    return t->sequences ? t->sequences->classes : 1;
}

/* Returns job `number` of a run of `whole`, which has data. Packed rows have a job for each class, from the longest
 * sequences on; the gradient by the response is summed over them. */
static inline gpuconv_arrays_job gc_timed_job(const gc_rows_timing *t, const gpuconv_arrays_job *whole,
                                              const int64_t *table, int number) {
    gpuconv_arrays_job job = *whole;
    const gpuconv_sequences *s = t->sequences;
    if (!s)
        return job;
    const int class = s->classes - 1 - number;
    const int64_t rows = s->sequences * s->channels, taps = job.response.frames;
    const int64_t most = s->frames / (class > 0 ? s->bounds[class - 1] + 1 : 1); /* sequences of the class */
    gpuconv_rows *const packed[] = {&job.signal, &job.output, &job.signal_gradient};
    for (int i = 0; i < 3; i++) {
        packed[i]->rows = gc_max(1, gc_min(most, s->sequences)) * s->channels;
        packed[i]->frames = s->bounds[class];
        packed[i]->starts = table + class * 2 * rows;
        packed[i]->lengths = table + (class * 2 + 1) * rows;
    }
    job.response.frames = job.response_gradient.frames = gc_min(taps, s->bounds[class]);
    job.accumulate = job.operation == GPUCONV_ARRAYS_GRADIENT_BOTH && number > 0;
    return job;
}

/* The times of the FFT library of a processor. */
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

typedef struct gc_measures {
    gc_measure_rates *peak_rates;
    gc_measure_copy *copy;
    gc_measure_plan *time_plan;
    gc_measure_reference *time_reference;
    gc_measure_rows *time_rows;
    gc_measure_costs *calibrate;
} gc_measures;

/* Returns the measurements of a backend; NULL if there is no module of it. */
const gc_measures *gc_measures_find(gpuconv_backend id);

gc_measure_rates gc_cpu_peak_rates, gc_cuda_peak_rates;
gc_measure_copy gc_cpu_copy, gc_cuda_copy;
gc_measure_plan gc_cpu_time_plan, gc_cuda_time_plan;
gc_measure_reference gc_cpu_time_reference, gc_cuda_time_reference;
gc_measure_rows gc_cpu_time_rows, gc_cuda_time_rows;
gc_measure_costs gc_cpu_calibrate, gc_cuda_calibrate;

#endif
