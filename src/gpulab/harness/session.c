/*
 * Runs single variants: opens the device, launches a variant on a case, checks the result and measures its time.
 *
 *   clocks       NVML, which is opened at run time: its header is missing from some toolkits, and its library comes
 * with the driver. Its functions are declared here, with the types of its interface. Only functions that read are
 * called. times        warm-up until the time no longer falls, then the median of at least ten samples with their
 * spread. A second measurement flushes the L2 cache before each sample. peak rates   a copy and a read for bytes per
 * second, a multiply-add loop for fp32 operations per second, cuBLAS products of 8192 x 8192 matrices for tensor-core
 * operations per second, and an empty launch. They are described as variants of two modules of their own, so that they
 * are run and timed like all others.
 */
#include "session.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/statistics.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Clocks, temperature, power ---------------------------------------------------------------------------------- */

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

struct gc_lab_nvml {
    void *library, *gpu;
    int (*shutdown)(void);
    int (*clock)(void *gpu, int which, unsigned *mhz);
    int (*clock_max)(void *gpu, int which, unsigned *mhz);
    int (*temperature)(void *gpu, int sensor, unsigned *celsius);
    int (*power)(void *gpu, unsigned *milliwatts);
    int (*reasons)(void *gpu, unsigned long long *reasons);
};

/* Opens the GPU with the PCI bus id `bus` (in CUDA's form). Returns NULL if the library or the GPU is not available. */
static gc_lab_nvml *open_nvml(const char *bus) {
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    int (*init)(void), (*by_bus)(const char *, void **);
    gc_lab_nvml *n = gc_calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->library = gc_library_open(names, false);
    if (n->library && gc_library_find(n->library, "nvmlInit_v2", &init) &&
        gc_library_find(n->library, "nvmlShutdown", &n->shutdown) &&
        gc_library_find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus) &&
        gc_library_find(n->library, "nvmlDeviceGetClockInfo", &n->clock) &&
        gc_library_find(n->library, "nvmlDeviceGetMaxClockInfo", &n->clock_max) &&
        gc_library_find(n->library, "nvmlDeviceGetTemperature", &n->temperature) &&
        gc_library_find(n->library, "nvmlDeviceGetPowerUsage", &n->power) &&
        gc_library_find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons) && init() == 0) {
        if (by_bus(bus, &n->gpu) == 0)
            return n;
        n->shutdown();
    }
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

static void close_nvml(gc_lab_nvml *nvml) {
    if (!nvml)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

bool gc_lab_nvml_read(const gc_lab_nvml *nvml, gc_lab_nvml_reading *reading) {
    *reading = (gc_lab_nvml_reading){0};
    if (!nvml)
        return false;
    unsigned value;
    if (nvml->clock(nvml->gpu, CLOCK_SM, &value) == 0)
        reading->clock_hz = 1e6 * value;
    if (nvml->clock(nvml->gpu, CLOCK_MEMORY, &value) == 0)
        reading->memory_clock_hz = 1e6 * value;
    if (nvml->clock_max(nvml->gpu, CLOCK_SM, &value) == 0)
        reading->clock_max_hz = 1e6 * value;
    if (nvml->temperature(nvml->gpu, SENSOR_GPU, &value) == 0)
        reading->celsius = value;
    if (nvml->power(nvml->gpu, &value) == 0)
        reading->watts = 1e-3 * value;
    if (nvml->reasons(nvml->gpu, &reading->throttle_reasons) != 0)
        reading->throttle_reasons = 0;
    return true;
}

void gc_lab_nvml_throttle_text(unsigned long long reasons, char *text, int size) {
    static const char *const names[] = {"idle",
                                        "clocks set by an application",
                                        "power cap",
                                        "hardware slowdown",
                                        "sync boost",
                                        "thermal slowdown",
                                        "hardware thermal slowdown",
                                        "power brake",
                                        "display clocks"};
    int used = snprintf(text, (size_t)size, "%s", reasons ? "" : "none");
    for (int bit = 0; bit < (int)(sizeof names / sizeof *names) && used < size; bit++)
        if (reasons >> bit & 1)
            used += snprintf(text + used, (size_t)(size - used), "%s%s", used ? ", " : "", names[bit]);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* The number of launches per sample is chosen such that a sample takes at least min_sample_seconds: the clock's
 * resolution and the host's cost of a launch are then small in comparison. */
static const double min_sample_seconds = 200e-6, min_warm_up_seconds = 30e-3, max_warm_up_seconds = 0.6;
enum { SAMPLES = 15, COLD_SAMPLES = 11, LONG_SAMPLES = 10, MAX_LAUNCHES = 64 };

/* Takes one sample of `launches` consecutive launches: CUDA events measure the first stream, or the host's clock
 * measures from idle to idle for variants with LAB_HOST_CLOCK. */
static int take_sample(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, int launches,
                       bool flushed, double *seconds) {
    bool events = device && !(variant->flags & LAB_HOST_CLOCK);
    int err = device && flushed ? gc_lab_device_flush_l2(device) : 0;
    if (!err && device && !events)
        err = gc_lab_device_synchronize(device);
    double start = gc_now();
    *seconds = 0;
    if (!err && events)
        err = gc_lab_device_timer_start(device);
    for (int r = 0; !err && r < launches; r++)
        err = variant->launch(run);
    if (!err && events)
        err = gc_lab_device_timer_stop(device, seconds);
    else if (!err && device)
        err = gc_lab_device_synchronize(device);
    if (!events)
        *seconds = gc_now() - start;
    *seconds /= launches;
    return err;
}

/* Launches for at least min_warm_up_seconds and until two successive samples were not more than 2 % faster than the
 * fastest one before, but at most for max_warm_up_seconds. Sets *seconds to the least time of a launch. */
static int warm_up(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device, double *seconds) {
    double start = gc_now(), least = HUGE_VAL;
    int steady = 0, err = 0;
    while (!err && (steady < 2 || gc_now() - start < min_warm_up_seconds) && gc_now() - start < max_warm_up_seconds) {
        err = take_sample(variant, run, device, 1, false, seconds);
        steady = *seconds < 0.98 * least ? 0 : steady + 1;
        least = fmin(least, *seconds);
    }
    *seconds = least;
    return err;
}

/* Measures a variant. `device` is NULL for variants on the CPU. Fails with DEVICE if a launch fails. */
static gpuconv_status measure_time(const gc_lab_variant *variant, const gc_lab_run *run, gc_lab_device *device,
                                   gc_lab_timing_result *timing, gpuconv_error *error) {
    double samples[SAMPLES], estimate;
    int err = warm_up(variant, run, device, &estimate);
    *timing = (gc_lab_timing_result){.samples = estimate > 0.2 ? LONG_SAMPLES : SAMPLES, .launches = 1};
    while (timing->launches < MAX_LAUNCHES && timing->launches * estimate < min_sample_seconds)
        timing->launches *= 2;
    for (int i = 0; !err && i < timing->samples; i++)
        err = take_sample(variant, run, device, timing->launches, false, &samples[i]);
    if (!err) {
        timing->median = gc_median(samples, timing->samples, NULL);
        timing->least = samples[0];
        timing->spread = (samples[timing->samples - 1] - samples[0]) / 2;
    }
    if (!err && device && estimate < 0.05 && !(variant->flags & LAB_ONCE)) {
        for (int i = 0; !err && i < COLD_SAMPLES; i++)
            err = take_sample(variant, run, device, 1, true, &samples[i]);
        if (!err)
            timing->cold = gc_median(samples, COLD_SAMPLES, NULL);
    }
    if (err)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s: %s", variant->name, gc_lab_device_error_text(err));
    return GPUCONV_OK;
}

/* ---- The session ------------------------------------------------------------------------------------------------- */

void gc_lab_session_open(gc_lab_session *session, FILE *progress) {
    gpuconv_error error = {0};
    *session = (gc_lab_session){.progress = progress};
    if (gc_lab_device_open(&session->device, &error) != GPUCONV_OK)
        (void)snprintf(session->no_device, sizeof session->no_device, "%.250s", error.message);
    else
        session->nvml = open_nvml(gc_lab_device_get_info(session->device)->bus);
}

void gc_lab_session_close(gc_lab_session *session) {
    gc_lab_blas_close();
    close_nvml(session->nvml);
    gc_lab_device_close(session->device);
    memset(session, 0, sizeof *session);
}

/* ---- One variant ------------------------------------------------------------------------------------------------- */

/* Returns the clock under load if NVML reports it, else the device's highest clock; 0 on the CPU without NVML. */
static double clock_hz(const gc_lab_session *session, const gc_lab_device *device) {
    gc_lab_nvml_reading reading;
    if (gc_lab_nvml_read(session->nvml, &reading) && reading.clock_hz > 0)
        return reading.clock_hz;
    return device ? gc_lab_device_get_info(device)->clock_hz : 0;
}

/* Turns the code that a launcher returned into a status. LAB_CANNOT sets `*unsupported` and is no error. */
static gpuconv_status launch_status(int code, const char *variant, const char *stage, bool *unsupported,
                                    gpuconv_error *error) {
    *unsupported = code == LAB_CANNOT;
    if (!code || *unsupported)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s, %s: %s", variant, stage, gc_lab_device_error_text(code));
}

static gpuconv_status run_on_case(const gc_lab_job *job, gc_lab_device *device, gc_lab_case *c, gc_lab_outcome *outcome,
                                  gpuconv_error *error) {
    const gc_lab_variant *variant = job->variant;
    gc_lab_run *run = gc_lab_case_run(c, variant);
    bool *unsupported = &outcome->unsupported;
    gpuconv_status err = GPUCONV_OK;
    if (variant->prepare)
        err = launch_status(variant->prepare(run), variant->name, "preparation", unsupported, error);
    if (!err && !*unsupported)
        err = gc_lab_case_poison(c, error);
    if (!err && !*unsupported)
        err = launch_status(variant->launch(run), variant->name, "launch", unsupported, error);
    if (!err && !*unsupported && device)
        err = launch_status(gc_lab_device_synchronize(device), variant->name, "kernel", unsupported, error);
    if (!err && !*unsupported)
        err = gc_lab_case_check(c, variant, job->max_compared, &outcome->deviation, error);
    if (!err && !*unsupported && job->timed)
        err = measure_time(variant, run, device, &outcome->timing, error);
    return err;
}

gpuconv_status gc_lab_session_run(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached,
                                  gc_lab_outcome *outcome, gpuconv_error *error) {
    gc_lab_device *device = job->variant->where == LAB_GPU ? session->device : NULL;
    gpuconv_status err = GPUCONV_OK;
    *outcome = (gc_lab_outcome){0};
    if (!gc_lab_case_fits(*cached, job->module, job->variant, job->size)) {
        gc_lab_case_free(*cached);
        err = gc_lab_case_new(job->module, job->variant, job->size, device, cached, error);
    }
    if (err)
        return err;
    gc_lab_case_run(*cached, job->variant)->clock_hz = clock_hz(session, device);
    err = run_on_case(job, device, *cached, outcome, error);
    if (err || outcome->unsupported) { /* the buffers may hold a partial result: do not reuse them */
        gc_lab_case_free(*cached);
        *cached = NULL;
    }
    return err;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *device_json(const gc_lab_session *session) {
    if (!session->device)
        return json_pack("{s:s}", "missing", session->no_device);
    const gc_lab_device_info *d = gc_lab_device_get_info(session->device);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:i}", "name", d->name, "capability",
                     d->capability, "driver", d->driver, "runtime", d->runtime, "multiprocessors", d->multiprocessors,
                     "memory", (json_int_t)d->memory, "l2", (json_int_t)d->l2, "shared_block_optin",
                     (json_int_t)d->shared_block_optin, "clock_hz", d->clock_hz, "memory_clock_hz", d->memory_clock_hz,
                     "copy_engines", d->copy_engines);
}

static json_t *state_json(const gc_lab_session *session) {
    gc_lab_nvml_reading s;
    char reasons[200];
    if (!gc_lab_nvml_read(session->nvml, &s))
        return json_pack("{s:s}", "missing", "NVML is not available");
    gc_lab_nvml_throttle_text(s.throttle_reasons, reasons, sizeof reasons);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:s}", "clock_hz", s.clock_hz, "clock_most_hz", s.clock_max_hz,
                     "memory_clock_hz", s.memory_clock_hz, "celsius", s.celsius, "watts", s.watts, "throttled_by",
                     reasons);
}

json_t *gc_lab_session_json(const gc_lab_session *session) {
    const gc_lab_peak_rates *peak = &session->peak_rates;
    return json_pack("{s:{s:s, s:s, s:i}, s:o, s:o, s:{s:f, s:f, s:f, s:f, s:f, s:f}}", "environment", "gpuconv",
                     gpuconv_version(), "compiler", __VERSION__, "processors", gc_processor_count(), "device",
                     device_json(session), "state", state_json(session), "ceilings", "copy", peak->copy, "read",
                     peak->read, "launch", peak->launch, "fp32", peak->operations[LAB_FP32], "fp16",
                     peak->operations[LAB_TENSOR_16], "tf32", peak->operations[LAB_TENSOR_TF32]);
}

/* ---- Peak rates -------------------------------------------------------------------------------------------------- */

#ifdef GPUCONV_WITH_CUDA

#include "kernels/measure/measure.h"

LAB_LAUNCHER(gck_reduction_read);

enum { FMA_ROUNDS = 2048, FMA_BLOCKS = 32 /* of 256 threads, per multiprocessor */, SIDE = 8192 };

static int launch_copy(const gc_lab_run *run) {
    return gck_peak_copy(run->buffer[0], run->buffer[1], run->count[0], run->stream[0]);
}

static int launch_fma_loop(const gc_lab_run *run) {
    return gck_peak_fma(run->buffer[1], run->multiprocessors * FMA_BLOCKS, FMA_ROUNDS, run->stream[0]);
}

static int launch_empty(const gc_lab_run *run) {
    return gck_peak_empty(run->stream[0]);
}

static int launch_product(const gc_lab_run *run) {
    return gc_lab_blas_multiply(run, (gc_lab_blas)run->parameter, run->buffer[0], run->buffer[1], run->buffer[2], 0);
}

static int memory_buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "from", .type = LAB_F32, .count = size[0]};
    buffer[1] = (gc_lab_buffer){.name = "to", .type = LAB_F32, .count = size[0], .role = LAB_SCRATCH};
    return 2;
}

static int product_buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_F32, .count = size[0] * size[2]};
    buffer[1] = (gc_lab_buffer){.name = "b", .type = LAB_F32, .count = size[2] * size[1]};
    buffer[2] = (gc_lab_buffer){.name = "c", .type = LAB_F32, .count = size[0] * size[1], .role = LAB_SCRATCH};
    return 3;
}

static const gc_lab_module memory_module = {.name = "peak rates", .buffers = memory_buffers};
static const gc_lab_module product_module = {.name = "peak rates", .buffers = product_buffers};

static const gc_lab_variant
    copy_variant = {.name = "copy", .where = LAB_GPU, .launch = launch_copy},
    read_variant = {.name = "read", .where = LAB_GPU, .launch = gck_reduction_read},
    fma_variant = {.name = "multiply-add loop", .where = LAB_GPU, .launch = launch_fma_loop},
    empty_variant = {.name = "empty launch", .where = LAB_GPU, .launch = launch_empty},
    tf32_variant = {.name = "cuBLAS tf32", .where = LAB_GPU, .launch = launch_product, .parameter = LAB_BLAS_TF32},
    fp16_variant = {
        .name = "cuBLAS fp16", .where = LAB_GPU, .launch = launch_product, .parameter = LAB_BLAS_F16, .input = LAB_F16};

/* Measures the median seconds of a launch; 0 if the device does not support the variant. */
static gpuconv_status time_variant(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached,
                                   double *seconds, gpuconv_error *error) {
    gc_lab_outcome outcome;
    gpuconv_status err = gc_lab_session_run(session, job, cached, &outcome, error);
    *seconds = err || outcome.unsupported ? 0 : outcome.timing.median;
    return err;
}

gpuconv_status gc_lab_session_warm_up(gc_lab_session *session, gpuconv_error *error) {
    static const double warm_up_seconds = 0.7;
    static const int64_t size[LAB_DIMENSIONS] = {1 << 22};
    const gc_lab_job job = {&memory_module, &fma_variant, size, .max_compared = 1, .timed = true};
    gc_lab_case *cached = NULL;
    gpuconv_status err = GPUCONV_OK;
    double start = gc_now(), seconds;
    while (session->device && !err && gc_now() - start < warm_up_seconds)
        err = time_variant(session, &job, &cached, &seconds, error);
    gc_lab_case_free(cached);
    return err;
}

gpuconv_status gc_lab_session_measure_peak_rates(gc_lab_session *session, gpuconv_error *error) {
    static const int64_t large[LAB_DIMENSIONS] = {1 << 27}, square[LAB_DIMENSIONS] = {SIDE, SIDE, SIDE};
    enum { COPY, READ, FMA, EMPTY, TF32, FP16, COUNT };
    const gc_lab_job jobs[COUNT] = {
        [COPY] = {&memory_module, &copy_variant, large, .max_compared = 1, .timed = true},
        [READ] = {&memory_module, &read_variant, large, .max_compared = 1, .timed = true},
        [FMA] = {&memory_module, &fma_variant, large, .max_compared = 1, .timed = true},
        [EMPTY] = {&memory_module, &empty_variant, large, .max_compared = 1, .timed = true},
        [TF32] = {&product_module, &tf32_variant, square, .max_compared = 1, .timed = true},
        [FP16] = {&product_module, &fp16_variant, square, .max_compared = 1, .timed = true},
    };
    if (!session->device)
        return GPUCONV_OK;
    gc_lab_peak_rates *peak = &session->peak_rates;
    double seconds[COUNT];
    double threads = (double)gc_lab_device_get_info(session->device)->multiprocessors * FMA_BLOCKS * 256;
    gc_lab_case *cached = NULL;
    gpuconv_status err = gc_lab_session_warm_up(session, error);
    for (int i = 0; !err && i < COUNT; i++)
        err = time_variant(session, &jobs[i], &cached, &seconds[i], error);
    gc_lab_case_free(cached);
    if (err)
        return err;
    peak->copy = 8.0 * (double)large[0] / seconds[COPY]; /* 4 bytes read and 4 written per element */
    peak->read = 4.0 * (double)large[0] / seconds[READ];
    peak->operations[LAB_FP32] = 2.0 * 64 * FMA_ROUNDS * threads / seconds[FMA]; /* 64 multiply-adds per round */
    peak->launch = seconds[EMPTY];
    const double product_operations = 2.0 * SIDE * SIDE * SIDE;
    if (seconds[TF32] > 0)
        peak->operations[LAB_TENSOR_TF32] = product_operations / seconds[TF32];
    if (seconds[FP16] > 0)
        peak->operations[LAB_TENSOR_16] = product_operations / seconds[FP16];
    return GPUCONV_OK;
}

#else

gpuconv_status gc_lab_session_warm_up(gc_lab_session *session, gpuconv_error *error) {
    (void)session;
    (void)error;
    return GPUCONV_OK;
}

gpuconv_status gc_lab_session_measure_peak_rates(gc_lab_session *session, gpuconv_error *error) {
    (void)session;
    (void)error;
    return GPUCONV_OK;
}

#endif
