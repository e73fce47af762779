/* Lanes on CUDA devices: samples over the bus and back, the kernel in between, all in the lane's own stream. */
#include "libgpuconv/engine/batch_convolver.h"

#include "kernels/engine/kernels.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HOPS = 8, LONGEST = 32768 }; /* a segment is done by one block: about eight transforms of it */

/* Items travel behind the samples that a lane takes in, counts of clipped samples behind those that it gives back. */
struct gc_lane {
    int device;
    char *in, *out; /* one allocation, */
    bool pinned;
    char *device_in, *device_out; /* with what is below, one allocation */
    float2 *turns, *spectra;
    int *ticket;
    unsigned long long *clipped; /* an item; pinned, where the last results end */
    cudaStream_t stream;
};

static int devices(gpuconv_error *error) {
    int driver = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
        return 0;
    }
    cudaError_t failed = cudaGetDeviceCount(&count);
    if (failed || count == 0) {
        gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device: %s",
                cudaGetErrorString(failed ? failed : cudaErrorNoDevice));
        return 0;
    }
    /* All or none: which way an entry goes must not depend on the device. */
    for (int d = 0; d < count; d++) {
        gck_batch_needs needs;
        failed = gck_batch_size(d, &needs);
        if (failed) {
            (void)cudaGetLastError();
            gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", d,
                    failed == cudaErrorNotSupported ? "batches want 136 KB of shared memory a block, more than it has"
                                                    : cudaGetErrorString(failed));
            return 0;
        }
    }
    return count;
}

static gpuconv_status wake(int device, gpuconv_error *error) {
    cudaError_t failed = cudaSetDevice(device);
    if (!failed)
        failed = cudaFree(NULL); /* older runtimes wait with the context for the first call that needs one */
    return failed ? gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", device, cudaGetErrorString(failed))
                  : GPUCONV_OK;
}

static void give_memory(gc_lane *l) {
    if (l->stream) {
        cudaStreamSynchronize(l->stream); /* nothing may still write to what is freed */
        cudaStreamDestroy(l->stream);
    }
    if (l->pinned)
        cudaHostUnregister(l->in);
    free(l->in);
    cudaFree(l->device_in);
}

static void free_lane(gc_lane *l) {
    if (!l)
        return;
    cudaSetDevice(l->device);
    give_memory(l);
    free(l);
}

/* Where the next part of an allocation begins. */
static int64_t part(int64_t *used, int64_t bytes) {
    int64_t at = *used;
    *used += gc_round_up(bytes, 256);
    return at;
}

/* A stream, memory and tables. Items of a lane may be cut into segments, at most one more for every LONGEST samples of
 * at least two bytes. */
static cudaError_t take_memory(gc_lane *l, int64_t room, int items) {
    gck_batch_needs needs;
    cudaError_t failed = gck_batch_size(l->device, &needs);
    if (failed)
        return failed;
    const int64_t segments = items + room / 2 / LONGEST + 1;
    int64_t used = 0;
    part(&used, room + segments * (int64_t)sizeof(gck_batch_item));
    const int64_t out = part(&used, room + items * (int64_t)sizeof *l->clipped), both = used;
    const int64_t turns = part(&used, needs.turns * (int64_t)sizeof *l->turns);
    const int64_t spectra = part(&used, needs.spectra * (int64_t)sizeof *l->spectra);
    const int64_t ticket = part(&used, sizeof *l->ticket);
    float2 *table = gc_calloc(needs.turns, sizeof *table);
    if (!table)
        return cudaErrorMemoryAllocation;
    gck_batch_turns(table);
    failed = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    l->in = gc_calloc(both, 1); /* in huge pages, which take a fraction of cudaHostAlloc's time to be pinned */
    if (!failed && !l->in)
        failed = cudaErrorMemoryAllocation;
    if (!failed)
        failed = cudaHostRegister(l->in, (size_t)both, cudaHostRegisterDefault);
    l->pinned = !failed;
    if (!failed)
        failed = cudaMalloc((void **)&l->device_in, (size_t)used);
    if (!failed) {
        l->out = l->in + out;
        l->device_out = l->device_in + out;
        l->turns = (float2 *)(l->device_in + turns);
        l->spectra = (float2 *)(l->device_in + spectra);
        l->ticket = (int *)(l->device_in + ticket);
        failed =
            cudaMemcpyAsync(l->turns, table, (size_t)needs.turns * sizeof *table, cudaMemcpyHostToDevice, l->stream);
    }
    if (!failed)
        failed = cudaStreamSynchronize(l->stream);
    free(table);
    return failed;
}

static gpuconv_status new_lane(int device, int64_t bytes, int items, gc_lane **lane, gpuconv_error *error) {
    *lane = NULL;
    gc_lane *l = gc_calloc(1, sizeof *l);
    if (!l)
        return gc_fail_memory(error, "a lane");
    l->device = device;
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    cudaError_t failed = cudaSetDevice(device);
    if (!failed)
        failed = cudaDeviceGetDefaultMemPool(&pool, device);
    if (!failed)
        failed = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    if (!failed)
        failed = take_memory(l, bytes, items);
    if (failed) {
        (void)cudaGetLastError(); /* no memory is no lasting failure */
        free_lane(l);
        return gc_fail(error, failed == cudaErrorMemoryAllocation ? GPUCONV_ERROR_MEMORY : GPUCONV_ERROR_DEVICE,
                       "CUDA device %d: %s", device, cudaGetErrorString(failed));
    }
    *lane = l;
    return GPUCONV_OK;
}

static void *in(gc_lane *l) {
    return l->in;
}

static const void *out(gc_lane *l) {
    return l->out;
}

/* Segments of an item, so that a long one does not keep one block busy while others have nothing to do. */
static int cut(const gc_lane *l, const gc_lane_item *from,
               unsigned long long *clipped, /* NOLINT(readability-non-const-parameter): the kernel writes there */
               gck_batch_item *to) {
    int64_t total = from->frames + from->taps_count - 1, step = total;
    int n = 0;
    if (from->taps_count <= GCK_BATCH_PART)
        step = HOPS * (2 * (int64_t)GCK_BATCH_PART - (from->taps_count + 2) / 4 * 4);
    for (int64_t at = 0; at < total; at += step)
        to[n++] = (gck_batch_item){.in = {l->device_in + from->in.at, from->in.format, from->in.step},
                                   .out = {l->device_out + from->out.at, from->out.format, from->out.step},
                                   .taps = from->taps ? from->taps : (const void *)(l->device_in + from->taps_at),
                                   .frames = from->frames,
                                   .first = at,
                                   .end = gc_min(at + step, total),
                                   .taps_count = from->taps_count,
                                   .wet = 1,
                                   .clipped = clipped};
    return n;
}

static int by_length(const void *a, const void *b) {
    const gck_batch_item *x = a, *y = b;
    int64_t m = x->end - x->first, n = y->end - y->first;
    return (m < n) - (m > n);
}

static gpuconv_status begin(gc_lane *l, const gc_lane_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error) {
    const int64_t items_at = gc_round_up(in_bytes, 16), counts_at = gc_round_up(out_bytes, 16);
    const size_t counts = (size_t)count * sizeof *l->clipped;
    gck_batch_item *item = (gck_batch_item *)(void *)(l->in + items_at);
    unsigned long long *clipped = (unsigned long long *)(void *)(l->device_out + counts_at);
    int n = 0;
    for (int i = 0; i < count; i++)
        n += cut(l, &items[i], clipped + i, item + n);
    qsort(item, (size_t)n, sizeof *item, by_length);
    l->clipped = (unsigned long long *)(void *)(l->out + counts_at);
    cudaError_t failed = cudaSetDevice(l->device);
    if (!failed)
        failed = cudaMemcpyAsync(l->device_in, l->in, (size_t)items_at + (size_t)n * sizeof *item,
                                 cudaMemcpyHostToDevice, l->stream);
    if (!failed)
        failed = cudaMemsetAsync(clipped, 0, counts, l->stream);
    if (!failed)
        failed = gck_batch((const gck_batch_item *)(const void *)(l->device_in + items_at), n, l->turns, l->spectra,
                           l->ticket, l->stream);
    if (!failed)
        failed = cudaMemcpyAsync(l->out, l->device_out, (size_t)counts_at + counts, cudaMemcpyDeviceToHost, l->stream);
    return failed ? gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", l->device, cudaGetErrorString(failed))
                  : GPUCONV_OK;
}

static gpuconv_status finish(gc_lane *l, gc_lane_item *items, int count, gpuconv_error *error) {
    cudaError_t failed = cudaSetDevice(l->device);
    if (!failed)
        failed = cudaStreamSynchronize(l->stream);
    if (failed)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d: %s", l->device, cudaGetErrorString(failed));
    for (int i = 0; i < count; i++)
        items[i].clipped = (int64_t)l->clipped[i];
    return GPUCONV_OK;
}

/* From the device's pool, which keeps what was given back: taking and giving wait for nobody. */
static float *keep(int device, const float *planes, int64_t floats) {
    float *to = NULL;
    size_t bytes = (size_t)floats * sizeof *to;
    cudaStream_t stream = cudaStreamPerThread;
    cudaError_t failed = cudaSetDevice(device);
    if (!failed)
        failed = cudaMallocAsync((void **)&to, bytes, stream);
    if (failed) {
        (void)cudaGetLastError();
        return NULL;
    }
    failed = cudaMemcpyAsync(to, planes, bytes, cudaMemcpyHostToDevice, stream);
    if (!failed)
        failed = cudaStreamSynchronize(stream);
    if (failed) {
        cudaFreeAsync(to, stream);
        return NULL;
    }
    return to;
}

static void forget(int device, float *planes) {
    cudaSetDevice(device);
    cudaFreeAsync(planes, cudaStreamPerThread);
}

/* ---- For benchmarks ---------------------------------------------------------------------------------------------- */

typedef struct trial_device {
    float *in, *taps, *out;
    gck_batch_item *items;
    gc_lane lane; /* tables, ticket and stream of one */
} trial_device;

typedef struct trial_shape {
    int64_t signals, frames, taps, in_row, taps_row, out_row;
    const float *in, *h; /* host memory: a row each, for all signals from one place on */
    int count;           /* items */
} trial_shape;

enum { SPREAD = 4096 }; /* rows begin so many floats apart in what was drawn: signals differ, memory does not grow */

static int64_t out_frames(const trial_shape *s) {
    return s->frames + s->taps - 1;
}

static cudaError_t trial_begin(trial_device *d, int number, trial_shape *s) {
    d->lane.device = number;
    cudaError_t failed = cudaSetDevice(number);
    if (!failed)
        failed = take_memory(&d->lane, 0, 0);
    size_t each = sizeof(float);
    if (!failed)
        failed = cudaMalloc((void **)&d->in, (size_t)(s->signals * s->in_row) * each);
    if (!failed)
        failed = cudaMalloc((void **)&d->taps, (size_t)(s->signals * s->taps_row) * each);
    if (!failed)
        failed = cudaMalloc((void **)&d->out, (size_t)(s->signals * s->out_row) * each);
    for (int64_t i = 0; i < s->signals && !failed; i++) {
        failed =
            cudaMemcpy(d->in + i * s->in_row, s->in + i * 4 % SPREAD, (size_t)s->frames * each, cudaMemcpyHostToDevice);
        if (!failed)
            failed = cudaMemcpy(d->taps + i * s->taps_row, s->h + i * 4 % SPREAD, (size_t)s->taps * each,
                                cudaMemcpyHostToDevice);
    }
    int64_t most = s->signals * (2 + out_frames(s) / LONGEST);
    gck_batch_item *items = failed ? NULL : gc_calloc(most, sizeof *items);
    if (!failed && !items)
        failed = cudaErrorMemoryAllocation;
    s->count = 0;
    const gc_lane whole = {.device_in = (char *)d->in, .device_out = (char *)d->out};
    const gc_pcm floats = {GC_F32, 32};
    for (int64_t i = 0; i < s->signals && !failed; i++) {
        gc_lane_item item = {.in = {i * s->in_row * (int64_t)each, floats, 1},
                             .out = {i * s->out_row * (int64_t)each, floats, 1},
                             .frames = s->frames,
                             .taps_count = s->taps,
                             .taps = d->taps + i * s->taps_row};
        s->count += cut(&whole, &item, NULL, items + s->count);
    }
    if (!failed)
        qsort(items, (size_t)s->count, sizeof *items, by_length);
    size_t bytes = failed ? 0 : (size_t)s->count * sizeof *items;
    if (!failed)
        failed = cudaMalloc((void **)&d->items, bytes);
    if (!failed)
        failed = cudaMemcpy(d->items, items, bytes, cudaMemcpyHostToDevice);
    if (!failed)
        failed = cudaMemset(d->out, 0xff, (size_t)(s->signals * s->out_row) * each);
    free(items);
    return failed;
}

static void trial_end(trial_device *d) {
    cudaSetDevice(d->lane.device);
    cudaFree(d->in);
    cudaFree(d->taps);
    cudaFree(d->out);
    cudaFree(d->items);
    give_memory(&d->lane);
}

/* Some frames of some signals, against sums in double precision. */
static cudaError_t trial_check(const trial_device *d, const trial_shape *s, double *off) {
    enum { PLACES = 200 };
    uint64_t state = 1;
    double error = 0, power = 0;
    for (int k = 0; k < PLACES; k++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t i = (int64_t)(state >> 33) % s->signals, n = (int64_t)(state >> 13 & 0xffffffff) % out_frames(s);
        const float *x = s->in + i * 4 % SPREAD, *h = s->h + i * 4 % SPREAD;
        float got;
        double want = 0;
        cudaError_t failed = cudaMemcpy(&got, d->out + i * s->out_row + n, sizeof got, cudaMemcpyDeviceToHost);
        if (failed)
            return failed;
        for (int64_t j = gc_max(0, n - s->frames + 1); j <= n && j < s->taps; j++)
            want += (double)h[j] * (double)x[n - j];
        error += ((double)got - want) * ((double)got - want);
        power += want * want;
    }
    *off = 10 * log10(error / power);
    return cudaSuccess;
}

static cudaError_t trial_launch(const trial_device *d, const trial_shape *s) {
    cudaError_t failed = cudaSetDevice(d->lane.device);
    return failed ? failed
                  : gck_batch(d->items, s->count, d->lane.turns, d->lane.spectra, d->lane.ticket, d->lane.stream);
}

static cudaError_t trial_wait(const trial_device *d) {
    cudaError_t failed = cudaSetDevice(d->lane.device);
    return failed ? failed : cudaStreamSynchronize(d->lane.stream);
}

static gpuconv_status trial(const int *device, int devices, int64_t signals, int64_t frames, int64_t taps, int runs,
                            double *seconds, double *off, gpuconv_error *error) {
    enum { TOGETHER = 8, WARM = 3 };
    trial_shape s = {.signals = signals, .frames = frames, .taps = taps};
    s.in_row = gc_round_up(frames, 4);
    s.taps_row = gc_round_up(taps, 4);
    s.out_row = gc_round_up(out_frames(&s), 4);
    trial_device *d = gc_calloc(devices, sizeof *d);
    int64_t drawn = gc_max(frames, taps) + SPREAD;
    float *in = gc_calloc(2 * drawn, sizeof *in);
    if (!d || !in) {
        free(d);
        free(in);
        return gc_fail_memory(error, "a trial");
    }
    uint32_t state = 1;
    for (int64_t i = 0; i < 2 * drawn; i++) {
        state = state * 1664525u + 1013904223u;
        in[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    s.in = in;
    s.h = in + drawn;
    cudaError_t failed = cudaSuccess;
    int begun = 0;
    for (; begun < devices && !failed; begun++)
        failed = trial_begin(&d[begun], device[begun], &s);
    for (int run = -WARM; run < runs && !failed; run++) {
        double start = gc_now();
        for (int k = 0; k < TOGETHER; k++)
            for (int i = 0; i < devices && !failed; i++)
                failed = trial_launch(&d[i], &s);
        for (int i = 0; i < devices && !failed; i++)
            failed = trial_wait(&d[i]);
        if (run >= 0)
            seconds[run] = (gc_now() - start) / TOGETHER;
    }
    *off = -HUGE_VAL;
    for (int i = 0; i < devices && !failed; i++) {
        double one;
        failed = cudaSetDevice(d[i].lane.device);
        if (!failed)
            failed = trial_check(&d[i], &s, &one);
        if (!failed && !isnan(*off) && !(one <= *off))
            *off = one;
    }
    for (int i = 0; i < begun; i++)
        trial_end(&d[i]);
    free(d);
    free(in);
    return failed ? gc_fail(error, GPUCONV_ERROR_DEVICE, "the trial failed: %s", cudaGetErrorString(failed))
                  : GPUCONV_OK;
}

const gc_batch_backend gc_batch_cuda = {
    .stored_taps = GCK_BATCH_PART,
    .lanes = 2,
    .devices = devices,
    .wake = wake,
    .lane = new_lane,
    .in = in,
    .out = out,
    .begin = begin,
    .finish = finish,
    .free = free_lane,
    .trial = trial,
    .keep = keep,
    .forget = forget,
};
