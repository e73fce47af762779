/* Device and ceilings of one run, and the one way in which a variant is run, checked and timed. */
#include "session.h"

#include "blas.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/pool.h"

#include <string.h>

#ifdef GPUCONV_WITH_CUDA
#include "kernels/engine/kernels.h"
#endif

void gc_lab_session_open(gc_lab_session *session, FILE *progress) {
    gpuconv_error error = {0};
    *session = (gc_lab_session){.progress = progress};
    if (gc_lab_device_open(&session->device, &error) != GPUCONV_OK)
        (void)snprintf(session->why, sizeof session->why, "%.250s", error.message);
    else
        session->nvml = gc_lab_nvml_open(gc_lab_device_about(session->device)->bus);
}

void gc_lab_session_close(gc_lab_session *session) {
    gc_lab_blas_close();
    gc_lab_nvml_close(session->nvml);
    gc_lab_device_close(session->device);
    memset(session, 0, sizeof *session);
}

/* ---- A variant --------------------------------------------------------------------------------------------------- */

static gpuconv_status launched(int failed, const gc_lab_variant *variant, const char *when, bool *cannot,
                               gpuconv_error *error) {
    *cannot = failed == LAB_CANNOT;
    return failed && !*cannot
               ? gc_fail(error, GPUCONV_ERROR_DEVICE, "%s, %s: %s", variant->name, when, gc_lab_device_error(failed))
               : GPUCONV_OK;
}

gpuconv_status gc_lab_session_variant(gc_lab_session *session, const gc_lab_module *module,
                                      const gc_lab_variant *variant, const int64_t *size, int64_t most,
                                      gc_lab_case **kept, gc_lab_error *found, gc_lab_times *timing, bool *cannot,
                                      gpuconv_error *error) {
    gc_lab_device *device = variant->where == LAB_GPU ? session->device : NULL;
    gpuconv_status failed = GPUCONV_OK;
    *cannot = false;
    if (!gc_lab_case_serves(*kept, module, variant, size)) {
        gc_lab_case_free(*kept);
        failed = gc_lab_case_new(module, variant, size, device, kept, error);
    }
    if (failed)
        return failed;
    gc_lab_run *run = gc_lab_case_run(*kept, variant);
    gc_lab_state state;
    run->clock_hz = gc_lab_nvml_read(session->nvml, &state) && state.clock_hz > 0 ? state.clock_hz
                    : device ? gc_lab_device_about(device)->clock_hz
                             : 0;
    if (variant->prepare)
        failed = launched(variant->prepare(run), variant, "preparing", cannot, error);
    if (!failed && !*cannot)
        failed = gc_lab_case_poison(*kept, error);
    if (!failed && !*cannot)
        failed = launched(variant->launch(run), variant, "launch", cannot, error);
    if (!failed && !*cannot && device)
        failed = launched(gc_lab_device_wait(device), variant, "kernel", cannot, error);
    if (!failed && !*cannot)
        failed = gc_lab_case_check(*kept, variant, most, found, error);
    if (!failed && !*cannot && timing)
        failed = gc_lab_measure(variant, run, device, timing, error);
    if (failed || *cannot) /* whatever it left there serves nobody */
        gc_lab_case_free(*kept), *kept = NULL;
    return failed;
}

/* ---- Ceilings ---------------------------------------------------------------------------------------------------- */

#ifdef GPUCONV_WITH_CUDA

enum { FMA_ROUNDS = 2048, FMA_BLOCKS = 32 }; /* blocks of 256 a multiprocessor */

static int copy(const gc_lab_run *run) {
    return gck_peak_copy(run->buffer[0], run->buffer[1], run->count[0], run->stream[0]);
}

static int fma_loop(const gc_lab_run *run) {
    return gck_peak_fma(run->buffer[1], run->multiprocessors * FMA_BLOCKS, FMA_ROUNDS, run->stream[0]);
}

static int empty(const gc_lab_run *run) {
    return gck_peak_empty(run->stream[0]);
}

static int product(const gc_lab_run *run) {
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

static const gc_lab_module memory_module = {.name = "ceilings", .buffers = memory_buffers};
static const gc_lab_module product_module = {.name = "ceilings", .buffers = product_buffers};

static gpuconv_status time_of(gc_lab_session *session, const gc_lab_module *module, const gc_lab_variant *variant,
                              const int64_t *size, gc_lab_case **kept, double *seconds, gpuconv_error *error) {
    gc_lab_error none;
    gc_lab_times timing;
    bool cannot;
    gpuconv_status failed =
        gc_lab_session_variant(session, module, variant, size, 1, kept, &none, &timing, &cannot, error);
    *seconds = failed || cannot ? 0 : timing.median;
    return failed;
}

gpuconv_status gc_lab_session_warm(gc_lab_session *session, gpuconv_error *error) {
    static const gc_lab_variant heat = {.name = "multiply-add loop", .where = LAB_GPU, .launch = fma_loop};
    static const int64_t size[LAB_DIMENSIONS] = {1 << 22};
    gc_lab_case *kept = NULL;
    gpuconv_status failed = GPUCONV_OK;
    double start = gc_now(), seconds;
    while (session->device && !failed && gc_now() - start < 0.7)
        failed = time_of(session, &memory_module, &heat, size, &kept, &seconds, error);
    gc_lab_case_free(kept);
    return failed;
}

gpuconv_status gc_lab_session_ceilings(gc_lab_session *session, gpuconv_error *error) {
    static const gc_lab_variant simple[] = {{.name = "copy", .where = LAB_GPU, .launch = copy},
                                            {.name = "multiply-add loop", .where = LAB_GPU, .launch = fma_loop},
                                            {.name = "empty launch", .where = LAB_GPU, .launch = empty}};
    static const gc_lab_variant products[] = {
        {.name = "cuBLAS tf32", .where = LAB_GPU, .launch = product, .parameter = LAB_BLAS_TF32},
        {.name = "cuBLAS fp16", .where = LAB_GPU, .launch = product, .parameter = LAB_BLAS_F16, .input = LAB_F16}};
    static const int64_t large[LAB_DIMENSIONS] = {1 << 27}, square[LAB_DIMENSIONS] = {8192, 8192, 8192};
    if (!session->device)
        return GPUCONV_OK;
    gc_lab_ceilings *c = &session->ceilings;
    double seconds[3], work = (double)gc_lab_device_about(session->device)->multiprocessors * FMA_BLOCKS * 256;
    gc_lab_case *kept = NULL;
    gpuconv_status failed = gc_lab_session_warm(session, error);
    for (int i = 0; !failed && i < 3; i++)
        failed = time_of(session, &memory_module, &simple[i], large, &kept, &seconds[i], error);
    if (!failed) {
        c->copy = 8.0 * (double)large[0] / seconds[0];
        c->operations[LAB_FP32] = 2.0 * 64 * FMA_ROUNDS * work / seconds[1];
        c->launch = seconds[2];
    }
    for (int i = 0; !failed && i < 2; i++) {
        failed = time_of(session, &product_module, &products[i], square, &kept, &seconds[i], error);
        if (!failed && seconds[i] > 0)
            c->operations[i ? LAB_TENSOR_16 : LAB_TENSOR_TF32] = 2.0 * 8192 * 8192 * 8192 / seconds[i];
    }
    gc_lab_case_free(kept);
    return failed;
}

#else

gpuconv_status gc_lab_session_warm(gc_lab_session *session, gpuconv_error *error) {
    (void)session;
    (void)error;
    return GPUCONV_OK;
}

gpuconv_status gc_lab_session_ceilings(gc_lab_session *session, gpuconv_error *error) {
    (void)session;
    (void)error;
    return GPUCONV_OK;
}

#endif

/* ---- As JSON ----------------------------------------------------------------------------------------------------- */

static json_t *device_json(const gc_lab_session *session) {
    if (!session->device)
        return json_pack("{s:s}", "missing", session->why);
    const gc_lab_device_info *d = gc_lab_device_about(session->device);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:i}", "name", d->name, "capability",
                     d->capability, "driver", d->driver, "runtime", d->runtime, "multiprocessors", d->multiprocessors,
                     "memory", (json_int_t)d->memory, "l2", (json_int_t)d->l2, "shared_block_optin",
                     (json_int_t)d->shared_block_optin, "clock_hz", d->clock_hz, "memory_clock_hz", d->memory_clock_hz,
                     "copy_engines", d->copy_engines);
}

static json_t *state_json(const gc_lab_session *session) {
    gc_lab_state s;
    char reasons[200];
    if (!gc_lab_nvml_read(session->nvml, &s))
        return json_pack("{s:s}", "missing", "no NVML here");
    gc_lab_nvml_reasons(s.reasons, reasons, sizeof reasons);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:s}", "clock_hz", s.clock_hz, "clock_most_hz", s.clock_most_hz,
                     "memory_clock_hz", s.memory_clock_hz, "celsius", s.celsius, "watts", s.watts, "throttled_by",
                     reasons);
}

json_t *gc_lab_session_json(const gc_lab_session *session) {
    const gc_lab_ceilings *c = &session->ceilings;
    return json_pack("{s:{s:s, s:s, s:i}, s:o, s:o, s:{s:f, s:f, s:f, s:f, s:f}}", "environment", "gpuconv",
                     gpuconv_version(), "compiler", __VERSION__, "processors", gc_processor_count(), "device",
                     device_json(session), "state", state_json(session), "ceilings", "copy", c->copy, "launch",
                     c->launch, "fp32", c->operations[LAB_FP32], "fp16", c->operations[LAB_TENSOR_16], "tf32",
                     c->operations[LAB_TENSOR_TF32]);
}
