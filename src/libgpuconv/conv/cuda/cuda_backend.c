/*
 * Streams on CUDA devices. A chunk crosses the bus in the format of the file and passes three streams:
 *
 *      copy-in    pinned input -> device           chunk i + 1
 *      compute    unpack, convolve, pack           chunk i
 *      copy-out   device -> pinned output          chunk i - 1
 *
 * Events order the stages of a chunk, so that the streams work on different chunks at the same time. A slot contains
 * the buffers and events of one chunk. It is reused after its output was released, when none of its work is in flight.
 *
 * There are two planar input buffers on the device: while one holds the chunk after its history, the history of the
 * next chunk is copied into the other. All kernels are in one stream, so that the buffers need no locks.
 */
#include "cuda_algorithm.h"
#include "cuda_arrays.h"
#include "cuda_device.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Events of a slot: begin and end of each stage. */
enum { COPY_IN_BEGIN, COPY_IN_END, COMPUTE_BEGIN, COMPUTE_END, COPY_OUT_BEGIN, COPY_OUT_END, EVENTS };

typedef struct slot {
    void *raw_in, *raw_out; /* device memory */
    cudaEvent_t event[EVENTS];
} slot;

_Static_assert((int)GC_CUDA_SLOTS <= GC_SLOTS_MAX, "a stream has the slots of its plan");

struct gc_stream {
    const gpuconv_plan *plan;
    gc_pcm in_format, out_format;
    gc_cuda_resources resources;
    gc_cuda_convolver convolver;
    gc_chunks *chunks;
    cudaStream_t copy_in, compute, copy_out;
    cudaEvent_t epoch;
    slot slots[GC_CUDA_SLOTS];
    int64_t history, in_stride, out_stride; /* floats */
    float *planar_in[2], *planar_out;
    gck_overs *overs;
    int64_t submitted;
    gc_stream_stats measured;
    char failure[200];
};

/* Stores the reason of the first error, after which the state is of no further use.
 * Returns GPUCONV_OK if `err` is cudaSuccess, else GPUCONV_ERROR_DEVICE. */
static gpuconv_status check(gc_stream *s, cudaError_t err, const char *what) {
    if (!err)
        return GPUCONV_OK;
    if (!*s->failure)
        snprintf(s->failure, sizeof s->failure, "%s failed on %s: %s", what, s->plan->device.name,
                 cudaGetErrorString(err));
    return GPUCONV_ERROR_DEVICE;
}

static gpuconv_status probe(const gpuconv_config *config, gc_device *device, gpuconv_error *error) {
    int number;
    gpuconv_status status = gc_cuda_choose_device(config->device, &number, error);
    if (!status)
        status = gc_cuda_check(error, number, gc_cuda_read_device(number, device));
    if (!status)
        device->threads = config->threads ? config->threads : 1;
    return status;
}

static gpuconv_status free_memory(gc_device *device, gpuconv_error *error) {
    const cudaError_t err = gc_cuda_free_memory(device->number, &device->memory);
    if (err == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s has too little free memory to start", device->name);
    }
    device->started = !err;
    return gc_cuda_check(error, device->number, err);
}

static gpuconv_status start(const gpuconv_config *config, gpuconv_error *error) {
    int number;
    gpuconv_status status = gc_cuda_choose_device(config->device, &number, error);
    if (!status)
        status = gc_cuda_check(error, number, cudaSetDevice(number));
    return status ? status : gc_cuda_check(error, number, cudaFree(NULL)); /* makes the context */
}

static void free_state(gc_stream *s) {
    if (!s)
        return;
    gc_cuda_resources_free(&s->resources);
    gc_cuda_convolver_free(&s->convolver);
    free(s);
}

/* Creates the slots. Their host memory is one block, which takes less time than many. */
static void init_slots(gc_stream *s) {
    const int64_t page = 4096, chunk = s->plan->choice.chunk;
    const int64_t in = chunk * s->plan->ir->inputs * gc_pcm_bytes(s->in_format);
    const int64_t out = chunk * s->plan->ir->outputs * gc_pcm_bytes(s->out_format);
    const int64_t in_pages = gc_round_up(in, page), out_pages = gc_round_up(out, page);
    char *host = gc_cuda_pinned(&s->resources, s->plan->choice.slots * (in_pages + out_pages));
    for (int i = 0; i < s->plan->choice.slots && host; i++, host += in_pages + out_pages) {
        slot *w = &s->slots[i];
        s->chunks->slot[i].in = host;
        s->chunks->slot[i].out = host + in_pages;
        w->raw_in = gc_cuda_memory(&s->resources, in);
        w->raw_out = gc_cuda_memory(&s->resources, out);
        for (int e = 0; e < EVENTS; e++)
            w->event[e] = gc_cuda_event(&s->resources, cudaEventBlockingSync);
    }
}

/* Clears the planar input and the clip counts, and waits until that is done. */
static cudaError_t clear_history(gc_stream *s) {
    size_t bytes = (size_t)(s->plan->ir->inputs * s->in_stride) * sizeof(float);
    cudaError_t err = cudaMemsetAsync(s->planar_in[0], 0, bytes, s->compute);
    GC_CUDA_TRY(err, cudaMemsetAsync(s->planar_in[1], 0, bytes, s->compute));
    GC_CUDA_TRY(err, cudaMemsetAsync(s->overs, 0, sizeof *s->overs, s->compute));
    return GC_CUDA_TRY(err, cudaStreamSynchronize(s->compute));
}

/* Creates everything on the device. Returns the first error. */
static cudaError_t init(gc_stream *s) {
    const gpuconv_plan *plan = s->plan;
    gc_cuda_resources *r = &s->resources;
    const int64_t each = sizeof(float);
    s->history = gc_schedule_history(&plan->choice.schedule);
    s->in_stride = gc_round_up(s->history, 32) + gc_round_up(plan->choice.chunk, 32);
    s->out_stride = gc_round_up(plan->choice.chunk, 32);
    gc_cuda_resources_init(r, plan->device.number);
    s->copy_in = gc_cuda_stream(r);
    s->compute = gc_cuda_stream(r);
    s->copy_out = gc_cuda_stream(r);
    s->epoch = gc_cuda_event(r, cudaEventDefault);
    init_slots(s);
    for (int i = 0; i < 2; i++)
        s->planar_in[i] = gc_cuda_memory(r, plan->ir->inputs * s->in_stride * each);
    s->planar_out = gc_cuda_memory(r, plan->ir->outputs * s->out_stride * each);
    s->overs = gc_cuda_memory(r, sizeof *s->overs);
    gc_cuda_convolver_init(&s->convolver, plan, s->in_stride, s->out_stride, r, s->compute);
    return GC_CUDA_TRY(r->err, clear_history(s));
}

static gpuconv_status new_stream(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_chunks *chunks, gc_stream **state,
                                 gpuconv_error *error) {
    *state = NULL;
    double begin = gc_now();
    gc_stream *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "the CUDA backend");
    s->plan = plan;
    s->chunks = chunks;
    s->in_format = in;
    s->out_format = out;
    int caller;
    cudaError_t err = gc_cuda_enter(plan->device.number, &caller);
    GC_CUDA_TRY(err, init(s));
    gc_cuda_leave(caller);
    if (err) {
        const int64_t bytes = s->resources.device_bytes;
        free_state(s);
        return err == cudaErrorMemoryAllocation
                   ? gc_cuda_check_memory(error, plan->device.number, err, "a convolution", bytes)
                   : gc_fail(error, GPUCONV_ERROR_DEVICE, "%s cannot be set up: %s", plan->device.name,
                             cudaGetErrorString(err));
    }
    s->measured.setup = gc_now() - begin;
    *state = s;
    return GPUCONV_OK;
}

/* Queues unpacking, convolution and packing of a chunk. */
static cudaError_t queue_compute(gc_stream *s, const slot *w, const gc_chunk *c) {
    const gpuconv_plan *plan = s->plan;
    int64_t offset = gc_round_up(s->history, 32);
    gck_planar in = {s->planar_in[s->submitted % 2] + offset, s->in_stride, plan->ir->inputs};
    gck_planar out = {s->planar_out, s->out_stride, plan->ir->outputs};
    float *next = s->planar_in[(s->submitted + 1) % 2] + offset;
    cudaError_t err = gck_unpack(s->in_format, w->raw_in, c->in_frames, in, plan->choice.chunk, s->compute);
    GC_CUDA_TRY(err, gck_copy_history(in, next, plan->choice.chunk, s->history, s->compute));
    GC_CUDA_TRY(err, gc_cuda_convolver_run(&s->convolver, in.samples, out.samples, c->out_frames, s->compute));
    return GC_CUDA_TRY(err, gck_pack(s->out_format, out, c->out_frames, w->raw_out, s->overs, s->compute));
}

/* Queues all stages of a chunk. */
static cudaError_t queue(gc_stream *s, const slot *w, const gc_chunk *c) {
    size_t in = (size_t)(c->in_frames * s->plan->ir->inputs * gc_pcm_bytes(s->in_format));
    size_t out = (size_t)(c->out_frames * s->plan->ir->outputs * gc_pcm_bytes(s->out_format));
    cudaError_t err = cudaSuccess;
    if (s->submitted == 0)
        GC_CUDA_TRY(err, cudaEventRecord(s->epoch, s->copy_in));
    GC_CUDA_TRY(err, cudaEventRecord(w->event[COPY_IN_BEGIN], s->copy_in));
    if (in > 0)
        GC_CUDA_TRY(err, cudaMemcpyAsync(w->raw_in, c->in, in, cudaMemcpyHostToDevice, s->copy_in));
    GC_CUDA_TRY(err, cudaEventRecord(w->event[COPY_IN_END], s->copy_in));
    GC_CUDA_TRY(err, cudaStreamWaitEvent(s->compute, w->event[COPY_IN_END], 0));
    GC_CUDA_TRY(err, cudaEventRecord(w->event[COMPUTE_BEGIN], s->compute));
    GC_CUDA_TRY(err, queue_compute(s, w, c));
    GC_CUDA_TRY(err, cudaEventRecord(w->event[COMPUTE_END], s->compute));
    GC_CUDA_TRY(err, cudaStreamWaitEvent(s->copy_out, w->event[COMPUTE_END], 0));
    GC_CUDA_TRY(err, cudaEventRecord(w->event[COPY_OUT_BEGIN], s->copy_out));
    GC_CUDA_TRY(err, cudaMemcpyAsync(c->out, w->raw_out, out, cudaMemcpyDeviceToHost, s->copy_out));
    return GC_CUDA_TRY(err, cudaEventRecord(w->event[COPY_OUT_END], s->copy_out));
}

static gpuconv_status submit(gc_stream *s, int n) {
    int caller;
    cudaError_t err = gc_cuda_enter(s->plan->device.number, &caller);
    GC_CUDA_TRY(err, queue(s, &s->slots[n], &s->chunks->slot[n]));
    gc_cuda_leave(caller);
    s->submitted += !err;
    return check(s, err, "starting a chunk");
}

/* Adds the times of a chunk, as its events recorded them, to the statistics. */
static cudaError_t add_times(gc_stream *s, const slot *w) {
    double at[EVENTS]; /* seconds since the first submit */
    cudaError_t err = cudaSuccess;
    for (int e = 0; e < EVENTS; e++) {
        float ms = 0;
        GC_CUDA_TRY(err, cudaEventElapsedTime(&ms, s->epoch, w->event[e]));
        at[e] = 1e-3 * (double)ms;
    }
    if (err)
        return err;
    gc_stream_stats *m = &s->measured;
    m->copy_in += at[COPY_IN_END] - at[COPY_IN_BEGIN];
    m->compute += at[COMPUTE_END] - at[COMPUTE_BEGIN];
    m->copy_out += at[COPY_OUT_END] - at[COPY_OUT_BEGIN];
    m->chunks++;
    if (m->timed_chunks < GC_TIMELINE)
        m->times[m->timed_chunks++] = (gc_chunk_times){.copy_in = {at[COPY_IN_BEGIN], at[COPY_IN_END]},
                                                       .compute = {at[COMPUTE_BEGIN], at[COMPUTE_END]},
                                                       .copy_out = {at[COPY_OUT_BEGIN], at[COPY_OUT_END]}};
    return cudaSuccess;
}

static gpuconv_status wait_output(gc_stream *s, int n) {
    int caller;
    cudaError_t err = gc_cuda_enter(s->plan->device.number, &caller);
    GC_CUDA_TRY(err, cudaEventSynchronize(s->slots[n].event[COPY_OUT_END]));
    GC_CUDA_TRY(err, add_times(s, &s->slots[n]));
    gc_cuda_leave(caller);
    return check(s, err, "a chunk");
}

static gpuconv_status reset(gc_stream *s) {
    int caller;
    cudaError_t err = gc_cuda_enter(s->plan->device.number, &caller);
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->copy_in));
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->compute));
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->copy_out));
    *s->failure = '\0';
    gc_slot_queue_reset(&s->chunks->queue);
    s->submitted = 0;
    s->measured = (gc_stream_stats){.setup = s->measured.setup};
    GC_CUDA_TRY(err, clear_history(s));
    gc_cuda_leave(caller);
    return check(s, err, "a reset");
}

static void measure(gc_stream *s, gc_stream_stats *m) {
    gck_overs overs = {0};
    int caller;
    *m = s->measured;
    cudaError_t err = gc_cuda_enter(s->plan->device.number, &caller);
    GC_CUDA_TRY(err, cudaMemcpyAsync(&overs, s->overs, sizeof overs, cudaMemcpyDeviceToHost, s->compute));
    GC_CUDA_TRY(err, cudaStreamSynchronize(s->compute));
    gc_cuda_leave(caller);
    if (!err) {
        m->overs.clipped = (int64_t)overs.clipped;
        memcpy(&m->overs.peak, &overs.peak, sizeof m->overs.peak);
    }
}

static const char *failure(const gc_stream *s) {
    return s->failure;
}

static const gc_stream_executor streams = {
    .new = new_stream,
    .submit = submit,
    .wait = wait_output,
    .reset = reset,
    .measure = measure,
    .failure = failure,
    .free = free_state,
};

const gc_backend gc_backend_cuda = {
    .id = GPUCONV_BACKEND_CUDA,
    .algorithms = gc_cuda_algorithms,
    .probe = probe,
    .free_memory = free_memory,
    .start = start,
    .costs = gc_costs_of_cuda,
    .count_devices = gc_cuda_count_devices,
    .init_device = gc_cuda_init_device,
    .upload = gc_cuda_keep,
    .release = gc_cuda_release,
    .alloc_pinned = gc_cuda_alloc_pinned,
    .free_pinned = gc_cuda_free_pinned,
    .stream = &streams,
    .rows = &gc_rows_cuda,
    .batch = &gc_batch_cuda,
    .bank = &gc_bank_cuda,
    .motion = &gc_motion_cuda,
};
