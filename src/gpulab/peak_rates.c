/*
 * Measures the device's peak rates: a copy and a read for bytes per second, a multiply-add loop for fp32 operations per
 * second, cuBLAS products of 8192 x 8192 matrices for tensor-core operations per second, and an empty launch.
 *
 * The kernels are described as variants of two modules of their own, so that they are run and timed like all others.
 */
#include "session.h"

#ifdef GPUCONV_WITH_CUDA

#include "kernels/engine/kernels.h"
#include "libgpuconv/core/clock.h"

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
