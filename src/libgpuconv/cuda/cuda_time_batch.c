/* Times of batches on samples in device memory, for benchmarks: `signals` signals on each of several devices at once,
 * each signal with its own response. */
#include "cuda_batch.h"

#include "cuda_device.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/point_sums.h"

#include <math.h>
#include <stdlib.h>

/* Signal i begins 4 i floats (modulo SHIFTS) after the first: signals differ, host memory does not grow. */
enum { SHIFTS = 4096 };

enum { CHECKED_FRAMES = 8, BATCHES_PER_RUN = 8, WARM_UP_RUNS = 3 };

/* The same work for every device. */
typedef struct shape {
    int64_t signals, frames, taps, in_row, taps_row, out_row; /* rows in floats */
    const float *in, *h;                                      /* host memory */
} shape;

typedef struct device_work {
    gc_cuda_resources resources;
    cudaStream_t stream;
    gc_cuda_rows rows;
    float *in, *taps, *out;
    gck_item *pieces;
    int counts[GCK_ITEM_SIZES];
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

static cudaError_t upload_pieces(device_work *d, const shape *s) {
    gc_cuda_resources *r = &d->resources;
    gck_item *pieces =
        gc_cuda_host_table(r, gc_cuda_rows_pieces(s->signals, s->signals * out_frames(s)), sizeof *pieces);
    int count = 0;
    for (int64_t i = 0; i < s->signals && pieces; i++) {
        const gck_item row = {.signal = d->in + i * s->in_row,
                              .response = d->taps + i * s->taps_row,
                              .output = d->out + i * s->out_row,
                              .frames = (int)s->frames,
                              .taps = (int)s->taps};
        count += gc_cuda_rows_cut(&row, pieces + count);
    }
    if (pieces)
        gc_cuda_rows_sort(pieces, count, d->counts);
    d->pieces = gc_cuda_upload(r, pieces, count * (int64_t)sizeof *pieces);
    free(pieces);
    return r->err;
}

/* Creates the samples and the work of one device. */
static cudaError_t prepare(device_work *d, int device, const shape *s) {
    const int64_t each = sizeof(float);
    gc_cuda_resources *r = &d->resources;
    gc_cuda_resources_init(r, device);
    r->err = cudaSetDevice(device);
    d->stream = gc_cuda_stream(r);
    GC_CUDA_TRY(r->err, gc_cuda_rows_init(&d->rows, r));
    d->in = gc_cuda_memory(r, s->signals * s->in_row * each);
    d->taps = gc_cuda_memory(r, s->signals * s->taps_row * each);
    d->out = gc_cuda_memory(r, s->signals * s->out_row * each);
    for (int64_t i = 0; i < s->signals && !r->err; i++) {
        r->err = cudaMemcpy(d->in + i * s->in_row, signal_of(s, i), (size_t)(s->frames * each), cudaMemcpyHostToDevice);
        GC_CUDA_TRY(r->err, cudaMemcpy(d->taps + i * s->taps_row, response_of(s, i), (size_t)(s->taps * each),
                                       cudaMemcpyHostToDevice));
    }
    GC_CUDA_TRY(r->err, upload_pieces(d, s));
    return GC_CUDA_TRY(r->err, cudaMemset(d->out, 0xff, (size_t)(s->signals * s->out_row * each)));
}

/* Compares the whole output of one signal, in `got`, with the convolution. Adds the energies of error and output. */
static void check_whole(const shape *s, int64_t i, const float *got, double *error, double *power) {
    const gc_point_sums is = gc_point_sums_of(got, out_frames(s)),
                        should_be = gc_point_sums_of_convolution(signal_of(s, i), s->frames, response_of(s, i), s->taps,
                                                                 out_frames(s));
    *error += gc_point_sums_distance(&is, &should_be);
    for (int64_t n = 0; n < out_frames(s); n++)
        *power += (double)got[n] * (double)got[n];
}

/* Adds the squared error of some frames of one signal, against sums in double precision, and their energy. */
static void check_frames(const shape *s, int64_t i, const float *got, uint64_t *state, double *error, double *power) {
    const float *x = signal_of(s, i), *h = response_of(s, i);
    for (int k = 0; k < CHECKED_FRAMES; k++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int64_t n = (int64_t)(*state >> 13 & 0xffffffff) % out_frames(s);
        double want = 0;
        for (int64_t j = gc_max(0, n - s->frames + 1); j <= n && j < s->taps; j++)
            want += (double)h[j] * (double)x[n - j];
        *error += ((double)got[n] - want) * ((double)got[n] - want);
        *power += want * want;
    }
}

/* Compares the outputs of all signals with the convolutions; *error_db: relative RMS error in dB of some frames of
 * each, or of the whole if that is far larger than the frames say. */
static cudaError_t check_outputs(const device_work *d, const shape *s, double *error_db) {
    const double estimate = 10; /* dB by which the whole, an estimate, may exceed the frames */
    uint64_t state = 1;
    double error = 0, power = 0, whole_error = 0, whole_power = 0;
    float *got = gc_calloc(out_frames(s), sizeof *got);
    cudaError_t err = got ? cudaSetDevice(d->resources.device) : cudaErrorMemoryAllocation;
    for (int64_t i = 0; i < s->signals && !err; i++) {
        err = cudaMemcpy(got, d->out + i * s->out_row, (size_t)out_frames(s) * sizeof *got, cudaMemcpyDeviceToHost);
        if (!err) {
            check_whole(s, i, got, &whole_error, &whole_power);
            check_frames(s, i, got, &state, &error, &power);
        }
    }
    free(got);
    const double whole = 10 * log10(whole_error / whole_power);
    *error_db = 10 * log10(error / power);
    if (!(whole <= *error_db + estimate))
        *error_db = whole;
    return err;
}

/* Runs BATCHES_PER_RUN batches on all devices at once. Returns the first error. */
static cudaError_t run_batches(const device_work *d, int devices) {
    cudaError_t err = cudaSuccess;
    for (int k = 0; k < BATCHES_PER_RUN; k++)
        for (int i = 0; i < devices; i++) {
            GC_CUDA_TRY(err, cudaSetDevice(d[i].resources.device));
            GC_CUDA_TRY(err, gc_cuda_rows_convolve(&d[i].rows, d[i].pieces, d[i].counts, d[i].stream));
        }
    for (int i = 0; i < devices; i++) {
        GC_CUDA_TRY(err, cudaSetDevice(d[i].resources.device));
        GC_CUDA_TRY(err, cudaStreamSynchronize(d[i].stream));
    }
    return err;
}

/* Prepares all devices, measures and checks. *error_db: the largest error of all devices; NaN if one has NaN. */
static cudaError_t measure(device_work *d, const gc_batch_timing *timing, const shape *s, double *error_db) {
    const int devices = timing->devices;
    cudaError_t err = cudaSuccess;
    for (int i = 0; i < devices; i++)
        GC_CUDA_TRY(err, prepare(&d[i], timing->device[i], s));
    for (int run = -WARM_UP_RUNS; run < timing->runs && !err; run++) {
        double start = gc_now();
        err = run_batches(d, devices);
        if (run >= 0)
            timing->seconds[run] = (gc_now() - start) / BATCHES_PER_RUN;
    }
    *error_db = -HUGE_VAL;
    for (int i = 0; i < devices && !err; i++) {
        double device_error;
        err = check_outputs(&d[i], s, &device_error);
        if (!err && !isnan(*error_db) && !(device_error <= *error_db))
            *error_db = device_error;
    }
    return err;
}

gpuconv_status gc_cuda_time_batch(const gc_batch_timing *timing, double *error_db, gpuconv_error *error) {
    shape s = {.signals = timing->signals, .frames = timing->frames, .taps = timing->taps};
    s.in_row = gc_round_up(s.frames, 4);
    s.taps_row = gc_round_up(s.taps, 4);
    s.out_row = gc_round_up(out_frames(&s), 4);
    device_work *d = gc_calloc(timing->devices, sizeof *d);
    int64_t length = gc_max(s.frames, s.taps) + SHIFTS;
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
    int caller;
    cudaError_t err = gc_cuda_enter(timing->device[0], &caller);
    GC_CUDA_TRY(err, measure(d, timing, &s, error_db));
    for (int i = 0; i < timing->devices; i++)
        gc_cuda_resources_free(&d[i].resources);
    if (!err)
        err = cudaSetDevice(timing->device[0]);
    gc_cuda_leave(caller);
    free(d);
    free(samples);
    return err ? gc_fail(error, GPUCONV_ERROR_DEVICE, "the benchmark failed on the GPU: %s", cudaGetErrorString(err))
               : GPUCONV_OK;
}
