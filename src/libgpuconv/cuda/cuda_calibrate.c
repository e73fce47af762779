/* Calibration of the GPU's cost model: times of a few convolutions on the device, of the bus, and of creating the CUDA
 * context. */
#include "cuda_algorithm.h"
#include "cuda_time_plan.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/backend.h"

#include <math.h>
#include <stdlib.h>

enum { RUNS = 5, CHANNELS = 2 };

/* Measures one convolution of `frames` frames in both channels: *seconds is the least time of all runs. */
static gpuconv_status time_plan(const gc_device *device, const gc_cuda_algorithm *algorithm, int64_t taps,
                                int64_t points, int64_t frames, double *seconds, gpuconv_error *error) {
    gpuconv_ir *mono = NULL, *ir = NULL;
    float *h = gc_calloc(taps, sizeof *h), *x = gc_calloc(frames, sizeof *x), *y = gc_calloc(frames, sizeof *y);
    const float *const in[CHANNELS] = {x, x}, *const planes[CHANNELS] = {h, h};
    float *const out[CHANNELS] = {y, y};
    double times[RUNS];
    gpuconv_status status = h && x && y ? GPUCONV_OK : GPUCONV_ERROR_MEMORY;
    if (!status)
        status = gpuconv_ir_new(planes, CHANNELS, taps, 48000, &mono, error);
    if (!status)
        status = gpuconv_ir_route(mono, CHANNELS, &ir, error);
    if (!status) {
        gpuconv_plan plan = {.ir = ir, .device = *device, .choice.algorithm = &algorithm->row};
        algorithm->schedule(taps, points, &plan.choice.schedule);
        const gc_timing timing = {in, out, frames, RUNS, times};
        status = gc_cuda_time_plan(&plan, &timing, error);
        *seconds = HUGE_VAL;
        for (int r = 0; r < RUNS && !status; r++)
            *seconds = fmin(*seconds, times[r]);
    }
    gpuconv_ir_free(mono);
    gpuconv_ir_free(ir);
    free(h);
    free(x);
    free(y);
    return status;
}

/* The measured times. */
typedef struct times {
    double direct, fused, three_kernels; /* seconds of a convolution */
    double start;                        /* seconds until the first work of the process is done */
    gc_peak_rates rates;
} times;

/* The work that is measured. */
enum { FRAMES = 1 << 22, POINTS = 4096, LONG_POINTS = 1 << 19, TAPS = 512 };

static gpuconv_status measure(const gpuconv_config *config, const gc_device *device, times *t, gpuconv_error *error) {
    const double warm_up = 0.05; /* gc_cuda_timer_run warms up for this long */
    double begin = gc_now(), first;
    /* The first work of a process waits for the context and for the kernels to be loaded. */
    gpuconv_status status = time_plan(device, &gc_cuda_direct, 16, 1, 1024, &first, error);
    t->start = gc_now() - begin - warm_up;
    gc_device plain = *device; /* taps are counted in multiply-adds, not in products of tensor cores */
    plain.tensor_cores = false;
    if (!status)
        status = time_plan(&plain, &gc_cuda_direct, TAPS, 1, FRAMES, &t->direct, error);
    if (!status)
        status = time_plan(device, &gc_cuda_overlap_save, TAPS, POINTS, FRAMES, &t->fused, error);
    if (!status)
        status =
            time_plan(device, &gc_cuda_overlap_save, LONG_POINTS / 4, LONG_POINTS, FRAMES, &t->three_kernels, error);
    return status ? status : gc_cuda_peak_rates(config, &t->rates, error);
}

/* Computes the costs from the measured times. */
static void fill_costs(const times *t, double *seconds) {
    const double samples = (double)FRAMES * CHANNELS;
    const double blocks = ceil((double)FRAMES / (double)(POINTS - TAPS + 1)) * CHANNELS;
    const double long_blocks = ceil((double)FRAMES / (0.75 * (double)LONG_POINTS)) * CHANNELS;
    /* Writing an output is half of copying a sample. */
    const double output = 4 / t->rates.copy, launch = t->rates.launch;
    seconds[GC_COST_CUDA_OUTPUT] = output;
    seconds[GC_COST_CUDA_LAUNCH] = launch;
    seconds[GC_COST_CUDA_TAP] = (t->direct - launch - output * samples) / (samples * (double)TAPS);
    seconds[GC_COST_CUDA_FUSED] =
        (t->fused - launch - output * samples) / (blocks * (double)POINTS / 2 * gc_cuda_slowdown(POINTS, false));
    seconds[GC_COST_CUDA_LONG] = (t->three_kernels - 3 * launch - output * samples) /
                                 (long_blocks * (double)LONG_POINTS / 2 * gc_cuda_slowdown(LONG_POINTS, true));
    seconds[GC_COST_BUS_BYTE] = 1 / (0.9 * t->rates.both_at_once);
    seconds[GC_COST_CUDA_START] = fmax(t->start, 0.01);
}

gpuconv_status gc_cuda_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error) {
    const double begin = gc_now();
    gc_device device;
    times t = {0};
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    const double probe_seconds = gc_now() - begin;
    if (!status)
        status = measure(config, &device, &t, error);
    if (status)
        return status;
    t.start += probe_seconds;
    gc_costs built_in = gc_costs_of_cuda("", device.multiprocessors);
    *costs = built_in;
    snprintf(costs->cuda, sizeof costs->cuda, "%s", device.name);
    fill_costs(&t, costs->seconds);
    for (int i = GC_COST_CUDA_TAP; i <= GC_COST_CUDA_LONG; i++)
        if (!(costs->seconds[i] > 0)) /* other work on the machine disturbed the measurement */
            costs->seconds[i] = built_in.seconds[i];
    /* The kernels of partitioned convolution are taken to scale as those of overlap-save. */
    double scale = costs->seconds[GC_COST_CUDA_FUSED] / built_in.seconds[GC_COST_CUDA_FUSED];
    costs->seconds[GC_COST_CUDA_LEVEL] *= scale;
    costs->seconds[GC_COST_CUDA_PASS] *= scale;
    costs->seconds[GC_COST_CUDA_BIN] *= scale;
    costs->seconds[GC_COST_CUDA_SAMPLE] *= scale;
    return GPUCONV_OK;
}
