/*
 * Moving sources on a CUDA device (kernels/engine/bank/motion.cu). The aligned responses are transformed once. A chunk
 * copies the inputs, the blends and the delays to the device, runs the kernels and copies the frames of its hops back.
 *
 *      input     channels x width   | past | chunk | free ... |      each chunk lies behind the one before
 *
 * When the next chunk has no room, the frames that delays reach back to move to the beginning.
 */
#include "cuda_device.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/motion_kernels.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Chunks for which the input has room, so that the past seldom moves; floats of responses that are copied at a time. */
enum { ROOM = 8, UPLOAD_FLOATS = 1 << 22 };

_Static_assert((int)GCK_MOTION_PHASES == (int)GC_DELAY_PHASES && (int)GCK_MOTION_TAPS == (int)GC_DELAY_TAPS,
               "the filters of the CPU");
_Static_assert(sizeof(gck_blend) == sizeof(gc_motion_blend) &&
                   offsetof(gck_blend, weight) == offsetof(gc_motion_blend, weight) &&
                   offsetof(gck_blend, gain) == offsetof(gc_motion_blend, gain),
               "blends are copied");

struct gc_motion_gpu {
    gc_cuda_resources resources;
    gck_motion kernel; /* the kernels' argument */
    int64_t past, chunk;
    float *input;
    gck_blend *blend, *blends; /* page-locked, device */
    double *delay, *delays;
    float *frames; /* page-locked */
    cudaStream_t stream;
    cudaEvent_t done;
    int first; /* moment from which scales are needed: 0, then 1 */
};

static void close_motion(gc_motion_gpu *g) {
    if (!g)
        return;
    gc_cuda_resources_free(&g->resources);
    free(g);
}

/* Copies rows of each channel, `frames` long. */
static cudaError_t copy_rows(const gc_motion_gpu *g, float *to, const float *from, int64_t pitch, int64_t frames,
                             enum cudaMemcpyKind kind) {
    const size_t each = sizeof *to;
    return frames ? cudaMemcpy2DAsync(to, (size_t)g->kernel.width * each, from, (size_t)pitch * each,
                                      (size_t)frames * each, (size_t)g->kernel.channels, kind, g->stream)
                  : cudaSuccess;
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* Uploads the filters tap after tap. */
static const float *upload_filters(gc_cuda_resources *r, const float *filters) {
    enum { ROWS = GC_DELAY_PHASES + 1, TAPS = GC_DELAY_TAPS };
    float *by_tap = gc_cuda_host_table(r, (int64_t)ROWS * TAPS, sizeof *by_tap);
    for (int p = 0; by_tap && p < ROWS; p++)
        for (int k = 0; k < TAPS; k++)
            by_tap[k * ROWS + p] = filters[p * TAPS + k];
    const float *on_device = gc_cuda_upload(r, by_tap, (int64_t)ROWS * TAPS * (int64_t)sizeof *by_tap);
    free(by_tap);
    return on_device;
}

/* Copies the responses to the device, some at a time, and computes their spectra and energies. Returns the errors of
 * the options' function; those of CUDA are in the resources. */
static gpuconv_status transform_responses(gc_motion_gpu *g, const gc_motion_options *o, gpuconv_error *error) {
    const int64_t each = o->receivers * o->taps, most = gc_max(1, gc_min(o->responses, UPLOAD_FLOATS / each));
    const int64_t rows = (int64_t)o->responses * o->receivers;
    gc_cuda_resources buffers;
    gc_cuda_resources_init(&buffers, g->resources.device);
    float *host = gc_cuda_pinned(&buffers, most * each * (int64_t)sizeof *host);
    float *copy = gc_cuda_memory(&buffers, most * each * (int64_t)sizeof *copy);
    float *energy = gc_cuda_host_table(&buffers, rows, sizeof *energy);
    cudaError_t err = g->resources.err ? g->resources.err : buffers.err;
    gpuconv_status status = GPUCONV_OK;
    for (int64_t first = 0; first < o->responses && !err && !status; first += most) {
        const int64_t count = gc_min(most, o->responses - first);
        memset(host, 0, (size_t)(count * each) * sizeof *host);
        for (int64_t i = 0; i < count && !status; i++)
            status = o->response(o->context, (int)(first + i), host + i * each, error);
        for (int64_t i = 0; i < count * o->receivers; i++) {
            double sum = 0;
            for (int64_t k = 0; k < o->taps; k++)
                sum += (double)host[i * o->taps + k] * (double)host[i * o->taps + k];
            energy[first * o->receivers + i] = (float)(2 * sum / (double)o->points);
        }
        GC_CUDA_TRY(
            err, cudaMemcpyAsync(copy, host, (size_t)(count * each) * sizeof *host, cudaMemcpyHostToDevice, g->stream));
        GC_CUDA_TRY(err, gck_motion_spectra(&g->kernel, copy, first, count, g->stream));
        GC_CUDA_TRY(err, cudaStreamSynchronize(g->stream));
    }
    g->resources.err = err;
    g->kernel.energy = gc_cuda_upload(&g->resources, energy, rows * (int64_t)sizeof *energy);
    free(energy);
    gc_cuda_resources_free(&buffers);
    return status;
}

/* Creates everything on the device, and renders a chunk of silence so that every kernel is loaded. */
static gpuconv_status init(gc_motion_gpu *g, const gc_motion_options *o, gpuconv_error *error) {
    gc_cuda_resources *r = &g->resources;
    gck_motion *k = &g->kernel;
    const int64_t spectrum = o->points / 2 * (int64_t)sizeof(float2), moments = (o->hops + 1) * o->channels;
    const int64_t groups = gc_divide_up(o->channels, GCK_MOTION_GROUP), chunk = o->hop * o->hops;
    const int64_t width = o->past + gc_round_up(gc_max(o->past, 1), chunk) + ROOM * chunk;
    const int64_t out = o->hops * o->receivers * o->points * (int64_t)sizeof(float);
    *k = (gck_motion){.channels = o->channels,
                      .receivers = o->receivers,
                      .responses = o->responses,
                      .hops = (int)o->hops,
                      .hop = o->hop,
                      .points = o->points,
                      .taps = o->taps,
                      .width = width};
    g->past = g->kernel.begin = o->past;
    g->chunk = chunk;
    g->stream = gc_cuda_stream(r);
    g->done = gc_cuda_event(r, cudaEventDisableTiming | cudaEventBlockingSync);
    k->table = gc_cuda_twiddles(r, gck_motion_twiddles, o->points / 2, o->points / 2);
    k->filters = upload_filters(r, o->filters);
    k->spectra = gc_cuda_memory(r, (int64_t)o->responses * o->receivers * spectrum);
    k->input = g->input = gc_cuda_memory(r, o->channels * width * (int64_t)sizeof *g->input);
    k->blend = g->blends = gc_cuda_memory(r, moments * (int64_t)sizeof *g->blends);
    k->delay = g->delays = gc_cuda_memory(r, moments * o->receivers * (int64_t)sizeof *g->delays);
    k->scale = gc_cuda_memory(r, moments * o->receivers * (int64_t)sizeof *k->scale);
    k->sums = gc_cuda_memory(r, o->hops * groups * o->receivers * spectrum);
    k->out = gc_cuda_memory(r, out);
    g->blend = gc_cuda_pinned(r, moments * (int64_t)sizeof *g->blend);
    g->delay = gc_cuda_pinned(r, moments * o->receivers * (int64_t)sizeof *g->delay);
    g->frames = gc_cuda_pinned(r, out);
    gpuconv_status status = transform_responses(g, o, error);
    GC_CUDA_TRY(r->err, cudaMemsetAsync(g->input, 0, (size_t)(o->channels * width) * sizeof *g->input, g->stream));
    GC_CUDA_TRY(r->err, cudaMemsetAsync(g->blends, 0, (size_t)moments * sizeof *g->blends, g->stream));
    GC_CUDA_TRY(r->err, cudaMemsetAsync(g->delays, 0, (size_t)(moments * o->receivers) * sizeof *g->delays, g->stream));
    if (!status)
        GC_CUDA_TRY(r->err, gck_motion_run(k, 0, g->stream));
    GC_CUDA_TRY(r->err, copy_rows(g, g->input, g->input + o->past, width, o->past, cudaMemcpyDeviceToDevice));
    GC_CUDA_TRY(r->err, cudaStreamSynchronize(g->stream));
    return status;
}

/* Checks that the kernels have the sizes of the options. Returns UNSUPPORTED. */
static gpuconv_status check(const gc_motion_options *o, const gc_device *device, gpuconv_error *error) {
    const int64_t bytes = gck_motion_shared(o->points, o->hop);
    if (bytes == 0 || bytes > device->shared_memory || (int64_t)o->responses * o->receivers > INT_MAX / (o->points / 4))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "sources do not move on a GPU with responses of %lld frames that are exchanged after %lld "
                       "frames; use the CPU",
                       (long long)o->taps, (long long)o->hop);
    return GPUCONV_OK;
}

static gpuconv_status open_motion(const gc_motion_options *o, gc_motion_gpu **gpu, gpuconv_error *error) {
    int device, caller;
    gc_device properties;
    *gpu = NULL;
    gpuconv_status status = gc_cuda_choose_device(o->device, &device, error);
    if (status)
        return status;
    gc_motion_gpu *g = gc_calloc(1, sizeof *g);
    if (!g)
        return gc_fail_memory(error, "the moving sources");
    cudaError_t err = gc_cuda_enter(device, &caller);
    gc_cuda_resources_init(&g->resources, device);
    GC_CUDA_TRY(err, gc_cuda_read_device(device, &properties));
    if (!err && !(status = check(o, &properties, error)))
        status = init(g, o, error);
    gc_cuda_leave(caller);
    err = err ? err : g->resources.err;
    if (status || err) {
        const int64_t bytes = g->resources.device_bytes;
        close_motion(g);
        return status ? status : gc_cuda_check_memory(error, device, err, "the moving sources", bytes);
    }
    *gpu = g;
    return GPUCONV_OK;
}

/* ---- Use --------------------------------------------------------------------------------------------------------- */

static cudaError_t queue_chunk(gc_motion_gpu *g, const gc_motion_work *c) {
    gck_motion *k = &g->kernel;
    const int64_t moments = (c->hops + 1) * k->channels, delays = moments * k->receivers, frames = c->hops * k->hop;
    cudaError_t err = cudaSuccess;
    k->hops = (int)c->hops;
    if (k->begin + frames > k->width) {
        err = copy_rows(g, g->input, g->input + k->begin - g->past, k->width, g->past, cudaMemcpyDeviceToDevice);
        k->begin = g->past;
    }
    memcpy(g->blend, c->blend, (size_t)moments * sizeof *g->blend);
    memcpy(g->delay, c->delay, (size_t)delays * sizeof *g->delay);
    GC_CUDA_TRY(err, copy_rows(g, g->input + k->begin, c->in, frames, frames, cudaMemcpyHostToDevice));
    GC_CUDA_TRY(err, cudaMemcpyAsync(g->blends, g->blend, (size_t)moments * sizeof *g->blend, cudaMemcpyHostToDevice,
                                     g->stream));
    GC_CUDA_TRY(err, cudaMemcpyAsync(g->delays, g->delay, (size_t)delays * sizeof *g->delay, cudaMemcpyHostToDevice,
                                     g->stream));
    GC_CUDA_TRY(err, gck_motion_run(k, g->first, g->stream));
    GC_CUDA_TRY(err,
                cudaMemcpyAsync(g->frames, k->out, (size_t)(c->hops * k->receivers * k->points) * sizeof *g->frames,
                                cudaMemcpyDeviceToHost, g->stream));
    /* The last moment is the first one of the next chunk. */
    const int64_t of_moment = (int64_t)k->channels * k->receivers;
    GC_CUDA_TRY(err, cudaMemcpyAsync(k->scale, k->scale + c->hops * of_moment, (size_t)of_moment * sizeof *k->scale,
                                     cudaMemcpyDeviceToDevice, g->stream));
    k->begin += frames;
    g->first = 1;
    return GC_CUDA_TRY(err, cudaEventRecord(g->done, g->stream));
}

static gpuconv_status render(gc_motion_gpu *g, const gc_motion_work *chunk, const float **out, gpuconv_error *error) {
    int caller;
    cudaError_t err = gc_cuda_enter(g->resources.device, &caller);
    GC_CUDA_TRY(err, queue_chunk(g, chunk));
    GC_CUDA_TRY(err, cudaEventSynchronize(g->done));
    gc_cuda_leave(caller);
    *out = g->frames;
    return gc_cuda_check(error, g->resources.device, err);
}

static int64_t device_bytes(const gc_motion_gpu *g) {
    return g->resources.device_bytes;
}

const gc_motion_backend gc_motion_cuda = {open_motion, render, device_bytes, close_motion};
