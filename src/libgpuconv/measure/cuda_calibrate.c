/*
 * Calibration of the GPU's cost model. The bus, the memory, a launch and the start of the device are measured as such.
 * Each of the other costs has a convolution whose time depends most on it: the cost is what makes the cost model
 * predict the time that was measured.
 */
#include "cuda_timing.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/conv/cuda/cuda_algorithm.h"
#include "libgpuconv/conv/cuda/cuda_arrays.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

enum { RUNS = 5, CHANNELS = 2, ROUNDS = 4 };

/* A convolution that is timed: of a stream of CHANNELS channels with a response each, or of rows with a response each.
 */
typedef struct sample {
    gc_cost cost;                        /* that it gives */
    const gc_cuda_algorithm *stream;     /* NULL: rows */
    int64_t count, taps, points, frames; /* count: rows, whose transforms are on the chip */
    double seconds;                      /* measured */
} sample;

static double least(const double times[RUNS]) {
    double seconds = times[0];
    for (int r = 1; r < RUNS; r++)
        seconds = fmin(seconds, times[r]);
    return seconds;
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

/* Makes the plan of a stream in one chunk. Returns false without memory. */
static bool plan_stream(const sample *s, const gc_device *device, gpuconv_plan *plan) {
    *plan = (gpuconv_plan){.ir = gc_ir_blank(CHANNELS, CHANNELS, CHANNELS, CHANNELS, s->taps, 48000),
                           .device = *device,
                           .choice = {.algorithm = &s->stream->row, .chunk = s->frames}};
    for (int c = 0; c < CHANNELS && plan->ir; c++)
        plan->ir->route[c] = (gc_route){c, c, c};
    return plan->ir && s->stream->schedule(s->taps, s->points, &plan->choice.schedule);
}

/* Returns the time that the cost model predicts for a stream, without the bus. */
static double predict_stream(const sample *s, const gc_device *device, const gc_costs *costs) {
    gpuconv_plan plan;
    const bool made = plan_stream(s, device, &plan);
    const gc_problem problem = {.kind = GC_STREAM, .stream = {.ir = plan.ir, .frames = s->frames}};
    const double seconds =
        made ? s->stream->seconds(&problem, device, costs, &plan.choice, (double)s->frames) : (double)NAN;
    gpuconv_ir_free(plan.ir);
    return seconds;
}

static gpuconv_status time_stream(sample *s, const gc_device *device, gpuconv_error *error) {
    gpuconv_plan plan;
    float *x = gc_calloc(s->frames, sizeof *x), *y = gc_calloc(s->frames, sizeof *y);
    const float *const in[CHANNELS] = {x, x};
    float *const out[CHANNELS] = {y, y};
    double times[RUNS] = {0};
    const gc_timing timing = {in, out, s->frames, RUNS, times};
    const gpuconv_status status = plan_stream(s, device, &plan) && x && y ? gc_cuda_time_plan(&plan, &timing, error)
                                                                          : gc_fail_memory(error, "the calibration");
    s->seconds = least(times);
    gpuconv_ir_free(plan.ir);
    free(x);
    free(y);
    return status;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static double predict_rows(const sample *s, const gc_device *device, const gc_costs *costs) {
    const gc_job_shape shape = {.rows = s->count,
                                .batch = s->count,
                                .group = 1,
                                .responses = s->count,
                                .taps = s->taps,
                                .signal_frames = s->frames,
                                .output_frames = s->frames};
    const gc_problem problem = {
        .kind = GC_ROWS,
        .rows = {
            .shape = shape, .samples = true, .required_algorithm = &gc_rows_chip.row, .required_points = s->points}};
    gc_rows_plan plan;
    gc_rows_plan_make(device, costs, &problem, &plan);
    return plan.seconds;
}

static cudaError_t run_rows(void *context, cudaStream_t stream) {
    const gc_cuda_call *c = context;
    return c->plan.algorithm->run(c, stream);
}

static gpuconv_status time_rows(sample *s, gc_cuda_arrays *cuda, gpuconv_error *error) {
    gc_cuda_timer t;
    gc_cuda_call call;
    double times[RUNS] = {0};
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    gpuconv_rows *const arrays[] = {&job.signal, &job.response, &job.output};
    gc_cuda_timer_init(&t, cuda->base.device);
    for (int i = 0; i < 3; i++) {
        const int64_t frames = i == 1 ? s->taps : s->frames;
        *arrays[i] = gpuconv_rows_of_floats(gc_cuda_timer_memory(&t, 4 * s->count * frames, 0), s->count, frames);
    }
    cuda->required_algorithm = &gc_rows_chip.row;
    cuda->required_points = s->points;
    gpuconv_status status = gc_cuda_prepare(cuda, &job, &call, error);
    if (!status) {
        call.workspace = call.plan.bytes ? gc_cuda_timer_memory(&t, call.plan.bytes, 0) : NULL;
        gc_cuda_timer_run(&t, run_rows, &call, RUNS, times);
    }
    s->seconds = least(times);
    const gpuconv_status ended = gc_cuda_timer_end(&t, error);
    return status ? status : ended;
}

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

static double predict(const sample *s, const gc_device *device, const gc_costs *costs) {
    return s->stream ? predict_stream(s, device, costs) : predict_rows(s, device, costs);
}

/* Sets the costs of the samples so that the predictions become the measured times. A time depends on more than one
 * cost, and the model takes maxima, so that this takes a few rounds. A cost keeps its built-in value where its sample's
 * time does not depend on it, or where other work on the machine has disturbed the measurement. */
static void solve(const sample *samples, int count, const gc_device *device, gc_costs *costs) {
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            const gc_cost cost = samples[i].cost;
            gc_costs twice = *costs;
            twice.seconds[cost] *= 2;
            const double once = predict(&samples[i], device, costs);
            const double factor = 1 + (samples[i].seconds - once) / (predict(&samples[i], device, &twice) - once);
            if (factor > 0.1 && factor < 10)
                costs->seconds[cost] *= factor;
        }
}

/* Measures all but the start of the device. */
static gpuconv_status measure(const gpuconv_config *config, const gc_device *device, gc_costs *costs,
                              gpuconv_error *error) {
    enum { FRAMES = 1 << 22, LONG_POINTS = 1 << 19, SHORT_POINTS = 1024 };
    gc_device plain = *device; /* taps are counted in multiply-adds, not in products of tensor cores */
    gc_peak_rates rates = {0};
    gpuconv_arrays *cuda = NULL;
    plain.tensor_cores = false;
    int64_t largest = gc_rows_chip.row.most;
    while (largest > gc_rows_chip.row.least && gc_rows_size(&gc_rows_chip, device, largest) < 0)
        largest /= 2;
    sample samples[] = {
        {GC_COST_CUDA_TAP, &gc_cuda_direct, .taps = 512, .frames = FRAMES},
        {GC_COST_CUDA_FUSED, &gc_cuda_overlap_save, .taps = 512, .points = 4096, .frames = FRAMES},
        {GC_COST_CUDA_LONG, &gc_cuda_overlap_save, .taps = LONG_POINTS / 4, .points = LONG_POINTS, .frames = FRAMES},
        {GC_COST_CUDA_PASS, &gc_cuda_partitioned, .taps = SHORT_POINTS / 2, .points = SHORT_POINTS, .frames = FRAMES},
        {GC_COST_CUDA_BIN, &gc_cuda_partitioned, .taps = 64 * SHORT_POINTS, .points = SHORT_POINTS, .frames = FRAMES},
        {GC_COST_CUDA_CYCLE, .count = 1, .taps = 512, .points = 2048, .frames = 1024},
        {GC_COST_CUDA_CHIP, .count = 16 * (int64_t)device->multiprocessors, .taps = 512, .points = largest,
         .frames = 8000},
    };
    const int count = sizeof samples / sizeof *samples;
    gpuconv_status status = gpuconv_arrays_new_cuda(device->number, &cuda, error);
    for (int i = 0; i < count && !status; i++)
        status = samples[i].stream ? time_stream(&samples[i], i ? device : &plain, error)
                                   : time_rows(&samples[i], (gc_cuda_arrays *)cuda, error);
    gpuconv_arrays_free(cuda);
    if (!status)
        status = gc_cuda_peak_rates(config, &rates, error);
    if (status)
        return status;
    /* Writing an output is half of copying a sample. Conversions are bound by the memory too. */
    costs->seconds[GC_COST_CUDA_SAMPLE] *= 4 / rates.copy / costs->seconds[GC_COST_CUDA_OUTPUT];
    costs->seconds[GC_COST_CUDA_OUTPUT] = 4 / rates.copy;
    costs->seconds[GC_COST_CUDA_LAUNCH] = rates.launch;
    costs->seconds[GC_COST_BUS_BYTE] = 1 / (0.9 * rates.both_at_once);
    const double tap = costs->seconds[GC_COST_CUDA_TAP];
    solve(samples, count, &plain, costs);
    /* A level of a transform is arithmetic too. Its own time is hidden behind the memory on most devices. */
    costs->seconds[GC_COST_CUDA_LEVEL] *= costs->seconds[GC_COST_CUDA_TAP] / tap;
    return GPUCONV_OK;
}

gpuconv_status gc_cuda_calibrate(const gpuconv_config *config, gc_costs *costs, gpuconv_error *error) {
    const double begin = gc_now(), warm_up = 0.05; /* gc_cuda_timer_run warms up for this long */
    gc_device device;
    sample first = {.stream = &gc_cuda_direct, .taps = 16, .frames = 1024};
    gpuconv_status status = gc_backend_cuda.probe(config, &device, error);
    /* The first work of a process waits for the context and for the kernels to be loaded. */
    if (!status)
        status = time_stream(&first, &device, error);
    if (status)
        return status;
    const double start = gc_now() - begin - warm_up;
    *costs = gc_costs_built_in(&device);
    costs->seconds[GC_COST_CUDA_START] = fmax(start, 0.01);
    snprintf(costs->cuda, sizeof costs->cuda, "%s", device.name);
    return measure(config, &device, costs, error);
}

const gc_measures gc_measures_cuda = {
    .peak_rates = gc_cuda_peak_rates,
    .copy = gc_cuda_copy,
    .time_plan = gc_cuda_time_plan,
    .time_rows = gc_cuda_time_rows,
    .time_reference = gc_cuda_time_reference,
    .calibrate = gc_cuda_calibrate,
};
