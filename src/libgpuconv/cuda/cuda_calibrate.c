/* What operations cost on this GPU: a few convolutions timed on the device, the bus, and waking it all. */
#include "cuda_time_plan.h"

#include "cuda_cost.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { RUNS = 5, CHANNELS = 2 };

/* Seconds of one convolution of `frames` frames in both channels. */
static gpuconv_status time_plan(const gc_device *device, gpuconv_algorithm algorithm, int64_t taps, int64_t points,
                                int64_t frames, double *seconds, gpuconv_error *error) {
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
        gpuconv_plan plan = {.backend = &gc_backend_cuda, .ir = ir, .device = *device};
        gc_schedule_make(algorithm, taps, points, &plan.schedule);
        status = gc_cuda_trial(&plan, in, frames, out, RUNS, times, error);
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

gpuconv_status gc_cuda_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error) {
    const int64_t frames = INT64_C(1) << 22, points = 4096, long_points = INT64_C(1) << 19, taps = 512;
    double begin = gc_now(), direct = 0, fused = 0, three = 0;
    gc_device device;
    gc_ceilings ceilings;
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    if (status)
        return status;
    /* A context and the kernels are what the first work of a process waits for. */
    status = time_plan(&device, GPUCONV_ALGORITHM_DIRECT, 16, 1, 1024, &direct, error);
    double start = gc_now() - begin - 0.05; /* a trial warms up for so long */
    gc_device plain = device;               /* multiply-adds are what taps are counted in */
    plain.tensor_cores = false;
    if (!status)
        status = time_plan(&plain, GPUCONV_ALGORITHM_DIRECT, taps, 1, frames, &direct, error);
    if (!status)
        status = time_plan(&device, GPUCONV_ALGORITHM_OVERLAP_SAVE, taps, points, frames, &fused, error);
    if (!status)
        status =
            time_plan(&device, GPUCONV_ALGORITHM_OVERLAP_SAVE, long_points / 4, long_points, frames, &three, error);
    if (!status)
        status = gc_cuda_ceilings(config, &ceilings, error);
    if (status)
        return status;
    gc_costs built_in = gc_costs_of_cuda("", device.multiprocessors);
    *costs = built_in;
    snprintf(costs->cuda, sizeof costs->cuda, "%s", device.name);
    double samples = (double)frames * CHANNELS;
    double blocks = ceil((double)frames / (double)(points - taps + 1)) * CHANNELS;
    double long_blocks = ceil((double)frames / (0.75 * (double)long_points)) * CHANNELS;
    /* An output is half of what copying a sample takes. */
    double output = 4 / ceilings.copy, launch = ceilings.launch;
    costs->seconds[GC_COST_CUDA_OUTPUT] = output;
    costs->seconds[GC_COST_CUDA_LAUNCH] = launch;
    costs->seconds[GC_COST_CUDA_TAP] = (direct - launch - output * samples) / (samples * (double)taps);
    costs->seconds[GC_COST_CUDA_FUSED] =
        (fused - launch - output * samples) / (blocks * (double)points / 2 * gc_cuda_slower(points));
    costs->seconds[GC_COST_CUDA_LONG] =
        (three - 3 * launch - output * samples) / (long_blocks * (double)long_points / 2 * gc_cuda_slower(long_points));
    for (int i = GC_COST_CUDA_TAP; i <= GC_COST_CUDA_LONG; i++) /* of a machine too busy to say */
        if (!(costs->seconds[i] > 0))
            costs->seconds[i] = built_in.seconds[i];
    /* The partitions' kernels scale as the others do. */
    double scale = costs->seconds[GC_COST_CUDA_FUSED] / built_in.seconds[GC_COST_CUDA_FUSED];
    costs->seconds[GC_COST_CUDA_LEVEL] *= scale;
    costs->seconds[GC_COST_CUDA_PASS] *= scale;
    costs->seconds[GC_COST_CUDA_BIN] *= scale;
    costs->seconds[GC_COST_CUDA_SAMPLE] *= scale;
    costs->seconds[GC_COST_BUS_BYTE] = 1 / (0.9 * ceilings.both_at_once);
    costs->seconds[GC_COST_CUDA_START] = fmax(start, 0.01);
    return GPUCONV_OK;
}
