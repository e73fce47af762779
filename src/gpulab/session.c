/* Opens the device, runs single variants, and describes the device as JSON. */
#include "session.h"

#include "blas.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/pool.h"

#include <string.h>

void gc_lab_session_open(gc_lab_session *session, FILE *progress) {
    gpuconv_error error = {0};
    *session = (gc_lab_session){.progress = progress};
    if (gc_lab_device_open(&session->device, &error) != GPUCONV_OK)
        (void)snprintf(session->no_device, sizeof session->no_device, "%.250s", error.message);
    else
        session->nvml = gc_lab_nvml_open(gc_lab_device_get_info(session->device)->bus);
}

void gc_lab_session_close(gc_lab_session *session) {
    gc_lab_blas_close();
    gc_lab_nvml_close(session->nvml);
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
        err = gc_lab_measure(variant, run, device, &outcome->timing, error);
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
