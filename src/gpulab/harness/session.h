/*
 * Session: the device, the NVML handle and the peak rates that one run of gpulab uses.
 *
 * The peak rates are measured in the same run as the kernels, so that a share of a peak compares two results that were
 * obtained at the same clock and temperature.
 */
#ifndef GPULAB_SESSION_H
#define GPULAB_SESSION_H

#include "case.h"

#include <jansson.h>
#include <stdio.h>

/* ---- Clocks, temperature, power ---------------------------------------------------------------------------------- */

typedef struct gc_lab_nvml gc_lab_nvml;

typedef struct gc_lab_nvml_reading {
    double clock_hz, memory_clock_hz, clock_max_hz; /* of the multiprocessors, of the memory; 0: unknown */
    double celsius, watts;
    unsigned long long throttle_reasons; /* bits of nvmlClocksThrottleReasons: why the clock is below its maximum */
} gc_lab_nvml_reading;

/* Reads the present values. Returns false and sets zeros if `nvml` is NULL. */
bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_nvml_reading *reading);

/* Writes the reasons as words, separated by commas; "none" if no bit is set. */
void gc_lab_nvml_throttle_text(unsigned long long reasons, char *text, int size);

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* Times are seconds per launch. */
typedef struct gc_lab_timing_result {
    int samples, launches; /* launches: consecutive launches in each sample */
    double median, least;
    double spread; /* half the difference between the longest and the shortest sample */
    double cold;   /* median with a flushed L2 cache; 0: not measured */
} gc_lab_timing_result;

/* ---- The session ------------------------------------------------------------------------------------------------- */

typedef struct gc_lab_peak_rates {
    double copy;          /* bytes per second, read and written */
    double read;          /* bytes per second, only read */
    double launch;        /* seconds per empty launch, in a sequence of launches */
    double operations[4]; /* per second, indexed by gc_lab_unit; 0: not measured */
} gc_lab_peak_rates;

typedef struct gc_lab_session {
    gc_lab_device *device; /* NULL: no usable GPU */
    char no_device[256];   /* the reason if `device` is NULL */
    gc_lab_nvml *nvml;     /* or NULL */
    gc_lab_peak_rates peak_rates;
    FILE *progress; /* receives one line per variant, or NULL */
} gc_lab_session;

/* Opens the device if there is one. A machine without a GPU is not an error. */
void gc_lab_session_open(gc_lab_session *session, FILE *progress);
void gc_lab_session_close(gc_lab_session *session);

/* Runs a multiply-add loop until the device has reached the clock that it keeps under load. Does nothing without a
 * device. */
gpuconv_status gc_lab_session_warm_up(gc_lab_session *session, gpuconv_error *error);

/* Warms the device up and measures its peak rates. Does nothing without a device. */
gpuconv_status gc_lab_session_measure_peak_rates(gc_lab_session *session, gpuconv_error *error);

/* Returns the members "environment", "device", "ceilings" (the peak rates) and "state" of a report; NULL if memory is
 * exhausted. */
json_t *gc_lab_session_json(const gc_lab_session *session);

/* What gc_lab_session_run runs. */
typedef struct gc_lab_job {
    const gc_lab_module *module;
    const gc_lab_variant *variant;
    const int64_t *size;
    int64_t max_compared; /* elements of each output to compare with the reference; 0: all */
    bool timed;           /* measure the time after the check */
} gc_lab_job;

typedef struct gc_lab_outcome {
    bool unsupported; /* the device lacks a feature that the variant needs: not an error */
    gc_lab_deviation deviation;
    gc_lab_timing_result timing; /* if the job is timed */
} gc_lab_outcome;

/* Runs one variant at one size: poisons its outputs, launches it, checks the result, and measures the time if
 * `job->timed` is set. `*cached` is a case that is reused between calls and replaced when the job needs other buffers;
 * the caller begins with NULL and frees the last one. After an error or an unsupported variant `*cached` is NULL. */
gpuconv_status gc_lab_session_run(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached,
                                  gc_lab_outcome *outcome, gpuconv_error *error);

#endif
