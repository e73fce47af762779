/* Times of batches on samples in device memory, for benchmarks: `signals` signals on each of several devices at once,
 * each signal with its own response. */
#include "cuda_batch.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

/* Signal i begins 4 i floats (modulo SHIFTS) after the first: signals differ, host memory does not grow. */
enum { SHIFTS = 4096 };

enum { CHECKED_FRAMES = 200, BATCHES_PER_RUN = 8, WARM_UP_RUNS = 3 };

/* The same work for every device. */
typedef struct shape {
    int64_t signals, frames, taps, in_row, taps_row, out_row; /* rows in floats */
    const float *in, *h;                                      /* host memory */
} shape;

typedef struct device_work {
    gc_batch_slot slot; /* tables and stream */
    float *in, *taps, *out;
    gck_batch_item *segments;
    int count;
} device_work;

static int64_t out_frames(const shape *s) {
    return s->frames + s->taps - 1;
}

static const float *signal_of(const shape *s, int64_t i) {
    return s->in + i * 4 % SHIFTS;
}

static const float *response_of(const shape *s, int64_t i) {
    return s->h + i * 4 % SHIFTS;
}

/* Uploads the segments of all signals. */
static cudaError_t upload_segments(device_work *d, const shape *s) {
    const gc_pcm floats = {GC_F32, 32};
    const int64_t each = sizeof(float);
    gc_cuda_resources *r = &d->slot.resources;
    int64_t most = s->signals * (2 + out_frames(s) / GC_CUDA_SEGMENT_MIN);
    gck_batch_item *segments = gc_calloc(most, sizeof *segments);
    if (!segments)
        return cudaErrorMemoryAllocation;
    for (int64_t i = 0; i < s->signals; i++) {
        gc_batch_item item = {.in = {i * s->in_row * each, floats, 1},
                              .out = {i * s->out_row * each, floats, 1},
                              .frames = s->frames,
                              .taps_count = s->taps,
                              .taps = d->taps + i * s->taps_row};
        d->count += gc_cuda_batch_cut(&item, (char *)d->in, (char *)d->out, NULL, segments + d->count);
    }
    gc_cuda_batch_sort(segments, d->count);
    d->segments = gc_cuda_upload(r, segments, d->count * (int64_t)sizeof *segments);
    free(segments);
    return r->err;
}

/* Creates the samples and the work of one device. */
static cudaError_t prepare(device_work *d, int device, const shape *s) {
    const int64_t each = sizeof(float);
    gc_cuda_resources *r = &d->slot.resources;
    gc_cuda_resources_init(r, device);
    GC_CUDA_TRY(r->err, gc_cuda_batch_allocate(&d->slot, 0, 0));
    d->in = gc_cuda_memory(r, s->signals * s->in_row * each);
    d->taps = gc_cuda_memory(r, s->signals * s->taps_row * each);
    d->out = gc_cuda_memory(r, s->signals * s->out_row * each);
    for (int64_t i = 0; i < s->signals && !r->err; i++) {
        r->err = cudaMemcpy(d->in + i * s->in_row, signal_of(s, i), (size_t)(s->frames * each), cudaMemcpyHostToDevice);
        GC_CUDA_TRY(r->err, cudaMemcpy(d->taps + i * s->taps_row, response_of(s, i), (size_t)(s->taps * each),
                                       cudaMemcpyHostToDevice));
    }
    GC_CUDA_TRY(r->err, upload_segments(d, s));
    return GC_CUDA_TRY(r->err, cudaMemset(d->out, 0xff, (size_t)(s->signals * s->out_row * each)));
}

/* Compares some frames of some signals with sums in double precision; *off: relative RMS error in dB. */
static cudaError_t check_frames(const device_work *d, const shape *s, double *off) {
    uint64_t state = 1;
    double error = 0, power = 0;
    cudaError_t err = cudaSetDevice(d->slot.resources.device);
    for (int k = 0; k < CHECKED_FRAMES && !err; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t i = (int64_t)(state >> 33) % s->signals, n = (int64_t)(state >> 13 & 0xffffffff) % out_frames(s);
        const float *x = signal_of(s, i), *h = response_of(s, i);
        float got = 0;
        double want = 0;
        err = cudaMemcpy(&got, d->out + i * s->out_row + n, sizeof got, cudaMemcpyDeviceToHost);
        for (int64_t j = gc_max(0, n - s->frames + 1); j <= n && j < s->taps; j++)
            want += (double)h[j] * (double)x[n - j];
        error += ((double)got - want) * ((double)got - want);
        power += want * want;
    }
    *off = 10 * log10(error / power);
    return err;
}

/* Runs BATCHES_PER_RUN batches on all devices at once. Returns the first error. */
static cudaError_t run_batches(const device_work *d, int devices) {
    cudaError_t err = cudaSuccess;
    for (int k = 0; k < BATCHES_PER_RUN; k++)
        for (int i = 0; i < devices; i++) {
            GC_CUDA_TRY(err, cudaSetDevice(d[i].slot.resources.device));
            GC_CUDA_TRY(err, gck_batch(d[i].segments, d[i].count, &d[i].slot.memory, d[i].slot.stream));
        }
    for (int i = 0; i < devices; i++) {
        GC_CUDA_TRY(err, cudaSetDevice(d[i].slot.resources.device));
        GC_CUDA_TRY(err, cudaStreamSynchronize(d[i].slot.stream));
    }
    return err;
}

/* Prepares all devices, measures and checks. *off: the largest error of all devices; NaN if one has NaN. */
static cudaError_t measure(device_work *d, const int *device, int devices, const shape *s, int runs, double *seconds,
                           double *off) {
    cudaError_t err = cudaSuccess;
    for (int i = 0; i < devices; i++)
        GC_CUDA_TRY(err, prepare(&d[i], device[i], s));
    for (int run = -WARM_UP_RUNS; run < runs && !err; run++) {
        double start = gc_now();
        err = run_batches(d, devices);
        if (run >= 0)
            seconds[run] = (gc_now() - start) / BATCHES_PER_RUN;
    }
    *off = -HUGE_VAL;
    for (int i = 0; i < devices && !err; i++) {
        double device_off;
        err = check_frames(&d[i], s, &device_off);
        if (!err && !isnan(*off) && !(device_off <= *off))
            *off = device_off;
    }
    return err;
}

gpuconv_status gc_cuda_time_batch(const int *device, int devices, int64_t signals, int64_t frames, int64_t taps,
                                  int runs, double *seconds, double *off, gpuconv_error *error) {
    shape s = {.signals = signals, .frames = frames, .taps = taps};
    s.in_row = gc_round_up(frames, 4);
    s.taps_row = gc_round_up(taps, 4);
    s.out_row = gc_round_up(out_frames(&s), 4);
    device_work *d = gc_calloc(devices, sizeof *d);
    int64_t length = gc_max(frames, taps) + SHIFTS;
    float *samples = gc_calloc(2 * length, sizeof *samples);
    if (!d || !samples) {
        free(d);
        free(samples);
        return gc_fail_memory(error, "a benchmark of batches");
    }
    uint32_t state = 1;
    for (int64_t i = 0; i < 2 * length; i++) {
        state = state * 1664525u + 1013904223u;
        samples[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    s.in = samples;
    s.h = samples + length;
    cudaError_t err = measure(d, device, devices, &s, runs, seconds, off);
    for (int i = 0; i < devices; i++)
        gc_cuda_resources_free(&d[i].slot.resources);
    free(d);
    free(samples);
    return err ? gc_fail(error, GPUCONV_ERROR_DEVICE, "the benchmark failed on the GPU: %s", cudaGetErrorString(err))
               : GPUCONV_OK;
}
