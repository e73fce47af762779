/* Times of batches on samples in device memory, for benchmarks: `signals` signals on each of several devices at once,
 * each signal with its own response. */
#include "libgpuconv/conv/cuda/cuda_batch.h"

#include "cuda_timing.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/point_sums.h"

#include <math.h>
#include <stdlib.h>

/* Signal i begins 4 i floats (modulo SHIFTS) after the first: signals differ, host memory does not grow. */
enum { SHIFTS = 4096 };

enum { BATCHES_PER_RUN = 8, WARM_UP_RUNS = 3 };

/* The same work for every device. */
typedef struct shape {
    int64_t signals, frames, taps, out_frames, in_row, taps_row, out_row; /* rows in floats */
    const float *in, *h;                                                  /* host memory */
} shape;

typedef struct device_work {
    gc_cuda_timer timer;
    gc_cuda_items items;
    float *in, *taps, *out;
    gck_item *pieces;
    int counts[GCK_ITEM_SIZES];
} device_work;

static const float *signal_of(const shape *s, int64_t i) {
    return s->in + i * 4 % SHIFTS;
}

static const float *response_of(const shape *s, int64_t i) {
    return s->h + i * 4 % SHIFTS;
}

/* Creates the samples and the work of one device. */
static void prepare(device_work *d, int device, const shape *s) {
    const int64_t each = sizeof(float);
    gc_cuda_timer *t = &d->timer;
    gc_cuda_resources *r = &t->resources;
    gc_cuda_timer_init(t, device);
    (void)gc_cuda_items_init(&d->items, r);
    d->in = gc_cuda_timer_memory(t, s->signals * s->in_row * each, 0);
    d->taps = gc_cuda_timer_memory(t, s->signals * s->taps_row * each, 0);
    d->out = gc_cuda_timer_memory(t, s->signals * s->out_row * each, 0xff); /* NaN */
    gck_item *pieces =
        gc_cuda_host_table(r, gc_cuda_items_pieces(s->signals, s->signals * s->out_frames), sizeof *pieces);
    int count = 0;
    for (int64_t i = 0; i < s->signals && !r->err; i++) {
        const gck_item row = {.signal = d->in + i * s->in_row,
                              .response = d->taps + i * s->taps_row,
                              .output = d->out + i * s->out_row,
                              .frames = (int)s->frames,
                              .taps = (int)s->taps};
        count += gc_cuda_items_cut(&row, pieces + count);
        gc_cuda_timer_copy(t, d->in + i * s->in_row, signal_of(s, i), s->frames * each, cudaMemcpyHostToDevice);
        gc_cuda_timer_copy(t, d->taps + i * s->taps_row, response_of(s, i), s->taps * each, cudaMemcpyHostToDevice);
    }
    if (!r->err)
        gc_cuda_items_sort(pieces, count, d->counts);
    d->pieces = gc_cuda_upload(r, pieces, count * (int64_t)sizeof *pieces);
    free(pieces);
}

/* Compares the outputs of all signals with the convolutions, by sums over all of their samples. Returns the relative
 * RMS error in dB. */
static double check_outputs(device_work *d, const shape *s) {
    double error = 0, power = 0;
    float *got = gc_cuda_host_table(&d->timer.resources, s->out_frames, sizeof *got);
    for (int64_t i = 0; i < s->signals && !d->timer.resources.err; i++) {
        gc_cuda_timer_copy(&d->timer, got, d->out + i * s->out_row, s->out_frames * (int64_t)sizeof *got,
                           cudaMemcpyDeviceToHost);
        const gc_point_sums is = gc_point_sums_of(got, s->out_frames),
                            should_be = gc_point_sums_of_convolution(signal_of(s, i), s->frames, response_of(s, i),
                                                                     s->taps, s->out_frames);
        error += gc_point_sums_distance(&is, &should_be);
        for (int64_t n = 0; n < s->out_frames; n++)
            power += (double)got[n] * (double)got[n];
    }
    free(got);
    return 10 * log10(error / power);
}

/* Runs BATCHES_PER_RUN batches on all devices at once. */
static void run_batches(device_work *d, int devices) {
    for (int k = 0; k < BATCHES_PER_RUN; k++)
        for (int i = 0; i < devices; i++) {
            cudaError_t *err = &d[i].timer.resources.err;
            GC_CUDA_TRY(*err, cudaSetDevice(d[i].timer.resources.device));
            GC_CUDA_TRY(*err, gc_cuda_items_convolve(&d[i].items, d[i].pieces, d[i].counts, d[i].timer.stream));
        }
    for (int i = 0; i < devices; i++)
        GC_CUDA_TRY(d[i].timer.resources.err, cudaStreamSynchronize(d[i].timer.stream));
}

/* Prepares all devices, measures, checks and releases them. *error_db: the largest error of all devices; NaN if one has
 * NaN. */
static gpuconv_status measure(device_work *d, const gc_batch_timing *timing, const shape *s, double *error_db,
                              gpuconv_error *error) {
    const int devices = timing->devices;
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < devices; i++)
        prepare(&d[i], timing->device[i], s);
    for (int run = -WARM_UP_RUNS; run < timing->runs; run++) {
        const double start = gc_now();
        run_batches(d, devices);
        if (run >= 0)
            timing->seconds[run] = (gc_now() - start) / BATCHES_PER_RUN;
    }
    *error_db = -HUGE_VAL;
    /* In reverse, so that the caller's device is current at the end. */
    for (int i = devices - 1; i >= 0; i--) {
        const double device_error = check_outputs(&d[i], s);
        if (!isnan(*error_db) && !(device_error <= *error_db))
            *error_db = device_error;
        const gpuconv_status ended = gc_cuda_timer_end(&d[i].timer, error);
        status = status ? status : ended;
    }
    return status;
}

gpuconv_status gc_cuda_time_batch(const gc_batch_timing *timing, double *error_db, gpuconv_error *error) {
    const int64_t length = gc_max(timing->frames, timing->taps) + SHIFTS,
                  out_frames = timing->frames + timing->taps - 1;
    device_work *d = gc_calloc(timing->devices, sizeof *d);
    float *samples = gc_calloc(2 * length, sizeof *samples);
    uint32_t state = 1;
    for (int64_t i = 0; i < 2 * length && samples; i++) {
        state = state * 1664525u + 1013904223u;
        samples[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    const shape s = {.signals = timing->signals,
                     .frames = timing->frames,
                     .taps = timing->taps,
                     .out_frames = out_frames,
                     .in_row = gc_round_up(timing->frames, 4),
                     .taps_row = gc_round_up(timing->taps, 4),
                     .out_row = gc_round_up(out_frames, 4),
                     .in = samples,
                     .h = samples ? samples + length : NULL};
    const gpuconv_status status =
        d && samples ? measure(d, timing, &s, error_db, error) : gc_fail_memory(error, "a benchmark of batches");
    free(d);
    free(samples);
    return status;
}
