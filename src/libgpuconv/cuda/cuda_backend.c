/*
 * The CUDA backend. A chunk crosses the bus as the file stores it and passes three streams:
 *
 *      copy-in    pinned input -> device           chunk i + 1
 *      compute    unpack, convolve, pack           chunk i
 *      copy-out   device -> pinned output          chunk i - 1
 *
 * Events hand a chunk from stream to stream, so the three work on different chunks at once. A slot holds everything a
 * chunk needs on its way; it is used again only after its output was released, by when nothing of it is in flight.
 *
 * The planar input lies twice on the device: while one holds the chunk behind its history, the other receives the
 * history of the next. All compute is in one stream, so they need no locks.
 */
#include "cuda_convolver.h"

#include "cuda_cost.h"
#include "cuda_time_plan.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/slot_queue.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES = 6 }; /* copy-in, compute, copy-out: begin and end of each */

typedef struct slot {
    void *in, *out;         /* pinned host memory */
    void *raw_in, *raw_out; /* device memory */
    cudaEvent_t event[STAGES];
    int64_t out_frames;
} slot;

struct gc_state {
    const gpuconv_plan *plan;
    gc_pcm in_format, out_format;
    gc_cuda_convolver convolver;
    gc_ring ring;
    cudaStream_t copy_in, compute, copy_out;
    cudaEvent_t epoch;
    slot slots[GC_CUDA_SLOTS];
    int64_t history, in_stride, out_stride; /* floats */
    float *planar_in[2], *planar_out;
    gck_overs *overs;
    int64_t submitted;
    gc_measurement measured;
    char failure[200];
};

/* Keeps the first failure's reason; the state is of no further use. */
static gpuconv_status check(gc_state *s, cudaError_t failed, const char *what) {
    if (!failed)
        return GPUCONV_OK;
    if (!*s->failure)
        snprintf(s->failure, sizeof s->failure, "%s failed on %s: %s", what, s->plan->device.name,
                 cudaGetErrorString(failed));
    gc_ring_stop(&s->ring);
    return GPUCONV_ERROR_DEVICE;
}

static gpuconv_status probe(const gpuconv_config *config, gc_device *device, gpuconv_error *error) {
    int driver = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no NVIDIA driver is installed");
    cudaError_t failed = cudaGetDeviceCount(&count);
    if (failed || count == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "no CUDA device: %s",
                       cudaGetErrorString(failed ? failed : cudaErrorNoDevice));
    if (config->device >= count)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d, only 0 to %d", config->device,
                       count - 1);
    int first = config->device < 0 ? 0 : config->device, last = config->device < 0 ? count - 1 : config->device;
    *device = (gc_device){.number = -1, .threads = config->threads ? config->threads : 1};
    for (int i = first; i <= last; i++) {
        struct cudaDeviceProp p;
        if ((failed = cudaGetDeviceProperties(&p, i)) != cudaSuccess)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d cannot be used: %s", i,
                           cudaGetErrorString(failed));
        if (p.multiProcessorCount <= device->multiprocessors)
            continue;
        device->number = i;
        device->multiprocessors = p.multiProcessorCount;
        device->shared_memory = (int64_t)p.sharedMemPerBlockOptin;
        device->tensor_cores = gck_tensor_pays(p.major, p.minor) != 0;
        device->memory = (double)p.totalGlobalMem;
        snprintf(device->name, sizeof device->name, "%.127s", p.name);
    }
    return GPUCONV_OK;
}

static void free_state(gc_state *s) {
    if (!s)
        return;
    cudaSetDevice(s->plan->device.number);
    cudaDeviceSynchronize(); /* nothing may still write to what is freed; failures were told before */
    for (int i = 0; i < GC_CUDA_SLOTS; i++) {
        cudaFreeHost(s->slots[i].in);
        cudaFreeHost(s->slots[i].out);
        cudaFree(s->slots[i].raw_in);
        cudaFree(s->slots[i].raw_out);
        for (int e = 0; e < STAGES; e++)
            if (s->slots[i].event[e])
                cudaEventDestroy(s->slots[i].event[e]);
    }
    gc_cuda_convolver_free(&s->convolver);
    cudaFree(s->planar_in[0]);
    cudaFree(s->planar_in[1]);
    cudaFree(s->planar_out);
    cudaFree(s->overs);
    if (s->epoch)
        cudaEventDestroy(s->epoch);
    if (s->copy_in)
        cudaStreamDestroy(s->copy_in);
    if (s->compute)
        cudaStreamDestroy(s->compute);
    if (s->copy_out)
        cudaStreamDestroy(s->copy_out);
    gc_ring_destroy(&s->ring);
    free(s);
}

static cudaError_t init_slot(gc_state *s, slot *w) {
    size_t in = (size_t)(s->plan->chunk * s->plan->ir->inputs * gc_pcm_bytes(s->in_format));
    size_t out = (size_t)(s->plan->chunk * s->plan->ir->outputs * gc_pcm_bytes(s->out_format));
    cudaError_t failed = cudaHostAlloc(&w->in, in, cudaHostAllocDefault);
    if (!failed)
        failed = cudaHostAlloc(&w->out, out, cudaHostAllocDefault);
    if (!failed)
        failed = cudaMalloc(&w->raw_in, in);
    if (!failed)
        failed = cudaMalloc(&w->raw_out, out);
    for (int e = 0; !failed && e < STAGES; e++)
        failed = cudaEventCreateWithFlags(&w->event[e], cudaEventBlockingSync);
    return failed;
}

static cudaError_t zero_history(gc_state *s) {
    size_t bytes = (size_t)(s->plan->ir->inputs * s->in_stride) * sizeof(float);
    cudaError_t failed = cudaMemsetAsync(s->planar_in[0], 0, bytes, s->compute);
    if (!failed)
        failed = cudaMemsetAsync(s->planar_in[1], 0, bytes, s->compute);
    if (!failed)
        failed = cudaMemsetAsync(s->overs, 0, sizeof *s->overs, s->compute);
    return failed ? failed : cudaStreamSynchronize(s->compute);
}

static cudaError_t init(gc_state *s) {
    const gpuconv_plan *plan = s->plan;
    s->history = gc_schedule_history(&plan->schedule);
    s->in_stride = gc_round_up(s->history, 32) + gc_round_up(plan->chunk, 32);
    s->out_stride = gc_round_up(plan->chunk, 32);
    cudaError_t failed = cudaSetDevice(plan->device.number);
    if (!failed)
        failed = cudaStreamCreateWithFlags(&s->copy_in, cudaStreamNonBlocking);
    if (!failed)
        failed = cudaStreamCreateWithFlags(&s->compute, cudaStreamNonBlocking);
    if (!failed)
        failed = cudaStreamCreateWithFlags(&s->copy_out, cudaStreamNonBlocking);
    if (!failed)
        failed = cudaEventCreate(&s->epoch);
    for (int i = 0; !failed && i < GC_CUDA_SLOTS; i++)
        failed = init_slot(s, &s->slots[i]);
    for (int i = 0; !failed && i < 2; i++)
        failed = cudaMalloc((void **)&s->planar_in[i], (size_t)(plan->ir->inputs * s->in_stride) * sizeof(float));
    if (!failed)
        failed = cudaMalloc((void **)&s->planar_out, (size_t)(plan->ir->outputs * s->out_stride) * sizeof(float));
    if (!failed)
        failed = cudaMalloc((void **)&s->overs, sizeof *s->overs);
    if (!failed)
        failed = gc_cuda_convolver_init(&s->convolver, plan, s->in_stride, s->out_stride, s->compute);
    return failed ? failed : zero_history(s);
}

static gpuconv_status new_state(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_state **state,
                                gpuconv_error *error) {
    *state = NULL;
    double begin = gc_now();
    gc_state *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "the CUDA backend");
    s->plan = plan;
    s->in_format = in;
    s->out_format = out;
    gc_ring_init(&s->ring, GC_CUDA_SLOTS);
    cudaError_t failed = init(s);
    if (failed) {
        gpuconv_status status = gc_fail(error, GPUCONV_ERROR_DEVICE, "%s cannot be set up: %s", plan->device.name,
                                        cudaGetErrorString(failed));
        free_state(s);
        return status;
    }
    s->measured.setup = gc_now() - begin;
    *state = s;
    return GPUCONV_OK;
}

static gpuconv_status acquire(gc_state *s, void **raw) {
    int n = gc_ring_acquire(&s->ring);
    if (n < 0)
        return *s->failure ? GPUCONV_ERROR_DEVICE : GPUCONV_ERROR_CANCELLED;
    *raw = s->slots[n].in;
    return GPUCONV_OK;
}

static cudaError_t queue_compute(gc_state *s, slot *w, int64_t in_frames, int64_t out_frames) {
    const gpuconv_plan *plan = s->plan;
    int inputs = plan->ir->inputs, outputs = plan->ir->outputs;
    int64_t before = gc_round_up(s->history, 32);
    float *now = s->planar_in[s->submitted % 2] + before, *next = s->planar_in[(s->submitted + 1) % 2] + before;
    cudaError_t failed =
        gck_unpack(s->in_format, w->raw_in, inputs, in_frames, plan->chunk, now, s->in_stride, s->compute);
    if (!failed)
        failed = gck_carry(now, next, s->in_stride, inputs, plan->chunk, s->history, s->compute);
    if (!failed)
        failed = gc_cuda_convolver_run(&s->convolver, now, s->planar_out, out_frames, s->compute);
    if (!failed)
        failed = gck_pack(s->out_format, s->planar_out, s->out_stride, outputs, out_frames, w->raw_out, s->overs,
                          s->compute);
    return failed;
}

static cudaError_t queue(gc_state *s, slot *w, int64_t in_frames, int64_t out_frames) {
    size_t in = (size_t)(in_frames * s->plan->ir->inputs * gc_pcm_bytes(s->in_format));
    size_t out = (size_t)(out_frames * s->plan->ir->outputs * gc_pcm_bytes(s->out_format));
    cudaError_t failed = s->submitted == 0 ? cudaEventRecord(s->epoch, s->copy_in) : cudaSuccess;
    if (!failed)
        failed = cudaEventRecord(w->event[0], s->copy_in);
    if (!failed && in > 0)
        failed = cudaMemcpyAsync(w->raw_in, w->in, in, cudaMemcpyHostToDevice, s->copy_in);
    if (!failed)
        failed = cudaEventRecord(w->event[1], s->copy_in);
    if (!failed)
        failed = cudaStreamWaitEvent(s->compute, w->event[1], 0);
    if (!failed)
        failed = cudaEventRecord(w->event[2], s->compute);
    if (!failed)
        failed = queue_compute(s, w, in_frames, out_frames);
    if (!failed)
        failed = cudaEventRecord(w->event[3], s->compute);
    if (!failed)
        failed = cudaStreamWaitEvent(s->copy_out, w->event[3], 0);
    if (!failed)
        failed = cudaEventRecord(w->event[4], s->copy_out);
    if (!failed)
        failed = cudaMemcpyAsync(w->out, w->raw_out, out, cudaMemcpyDeviceToHost, s->copy_out);
    return failed ? failed : cudaEventRecord(w->event[5], s->copy_out);
}

static gpuconv_status submit(gc_state *s, int64_t in_frames, int64_t out_frames) {
    int n = gc_ring_acquire(&s->ring);
    if (n < 0)
        return *s->failure ? GPUCONV_ERROR_DEVICE : GPUCONV_ERROR_CANCELLED;
    slot *w = &s->slots[n];
    w->out_frames = out_frames;
    cudaError_t failed = cudaSetDevice(s->plan->device.number);
    if (!failed)
        failed = queue(s, w, in_frames, out_frames);
    if (failed)
        return check(s, failed, "starting a chunk");
    s->submitted++;
    gc_ring_fill(&s->ring);
    gc_ring_finish(&s->ring); /* the device is its own worker: its events say when it is done */
    return GPUCONV_OK;
}

static gpuconv_status finish(gc_state *s) {
    gc_ring_close(&s->ring);
    return GPUCONV_OK;
}

static cudaError_t note_times(gc_state *s, const slot *w) {
    float at[STAGES];
    for (int e = 0; e < STAGES; e++) {
        cudaError_t failed = cudaEventElapsedTime(&at[e], s->epoch, w->event[e]);
        if (failed)
            return failed;
    }
    gc_measurement *m = &s->measured;
    m->copy_in += 1e-3 * ((double)at[1] - (double)at[0]);
    m->compute += 1e-3 * ((double)at[3] - (double)at[2]);
    m->copy_out += 1e-3 * ((double)at[5] - (double)at[4]);
    m->chunks++;
    if (m->passages < GC_TIMELINE)
        m->passage[m->passages++] = (gc_passage){.copy_in = {1e-3 * (double)at[0], 1e-3 * (double)at[1]},
                                                 .compute = {1e-3 * (double)at[2], 1e-3 * (double)at[3]},
                                                 .copy_out = {1e-3 * (double)at[4], 1e-3 * (double)at[5]}};
    return cudaSuccess;
}

static gpuconv_status wait_output(gc_state *s, const void **raw, int64_t *frames) {
    int n = gc_ring_wait(&s->ring);
    *raw = NULL;
    *frames = 0;
    if (n == GC_RING_STOPPED)
        return *s->failure ? GPUCONV_ERROR_DEVICE : GPUCONV_ERROR_CANCELLED;
    if (n == GC_RING_END)
        return GPUCONV_OK;
    slot *w = &s->slots[n];
    cudaError_t failed = cudaSetDevice(s->plan->device.number);
    if (!failed)
        failed = cudaEventSynchronize(w->event[STAGES - 1]);
    if (!failed)
        failed = note_times(s, w);
    if (failed)
        return check(s, failed, "a chunk");
    *raw = w->out;
    *frames = w->out_frames;
    return GPUCONV_OK;
}

static void release(gc_state *s) {
    gc_ring_release(&s->ring);
}

static void stop(gc_state *s) {
    gc_ring_stop(&s->ring);
}

static gpuconv_status reset(gc_state *s) {
    cudaError_t failed = cudaSetDevice(s->plan->device.number);
    if (!failed)
        failed = cudaDeviceSynchronize();
    *s->failure = '\0';
    gc_ring_reset(&s->ring);
    s->submitted = 0;
    s->measured = (gc_measurement){.setup = s->measured.setup};
    return check(s, failed ? failed : zero_history(s), "a reset");
}

static void measure(gc_state *s, gc_measurement *m) {
    gck_overs overs = {0};
    *m = s->measured;
    if (cudaSetDevice(s->plan->device.number) == cudaSuccess &&
        cudaMemcpy(&overs, s->overs, sizeof overs, cudaMemcpyDeviceToHost) == cudaSuccess) {
        m->overs.clipped = (int64_t)overs.clipped;
        memcpy(&m->overs.peak, &overs.peak, sizeof m->overs.peak);
    }
}

static const char *failure(const gc_state *s) {
    return s->failure;
}

const gc_backend gc_backend_cuda = {
    .id = GPUCONV_BACKEND_CUDA,
    .probe = probe,
    .plan = gc_cuda_plan,
    .state = new_state,
    .acquire = acquire,
    .submit = submit,
    .finish = finish,
    .wait = wait_output,
    .release = release,
    .stop = stop,
    .reset = reset,
    .measure = measure,
    .failure = failure,
    .free = free_state,
    .ceilings = gc_cuda_ceilings,
    .copy = gc_cuda_copy,
    .trial = gc_cuda_trial,
    .peer = gc_cuda_peer,
    .calibrate = gc_cuda_calibrate,
};
