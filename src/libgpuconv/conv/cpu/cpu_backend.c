/*
 * The CPU backend. The stream's thread takes submitted chunks, unpacks each to planar floats behind the last frames of
 * the previous chunk, runs the algorithm's convolver on all cores and packs the result.
 *
 *      in[channel]   | history | chunk |   after each chunk its last `history` frames are moved to the front
 */
#include "cpu_algorithm.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/subnormal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { STRIPE = 32768 /* frames that one job unpacks or packs */ };

struct gc_stream {
    const gpuconv_plan *plan;
    gc_pcm in_format, out_format;
    const volatile int *cancel; /* cancel flag of the thread that created the stream */
    gc_convolver *convolver;
    gc_pool *pool;
    gc_chunks *chunks;
    pthread_t thread;
    bool running;
    int64_t history;
    float **in, **out;   /* per channel: the planar chunk */
    char *memory;        /* of the slots and the planar chunks */
    gc_pcm_overs *overs; /* per worker */
    gc_chunk *current;   /* being computed */
    double started;      /* origin of the chunk times */
    gc_stream_stats stats;
};

/* Unpacks one stripe of the current input chunk, and zeros behind the end of the input. */
static void unpack(void *context, int64_t stripe, int worker) {
    (void)worker;
    gc_stream *s = context;
    const gc_chunk *chunk = s->current;
    int channels = s->plan->ir->inputs;
    int64_t at = stripe * STRIPE, n = gc_min(STRIPE, s->plan->choice.chunk - at);
    int64_t valid = gc_max(0, gc_min(n, chunk->in_frames - at));
    const char *raw = (const char *)chunk->in + at * channels * gc_pcm_bytes(s->in_format);
    gc_pcm_unpack(gc_simd_best(), s->in_format, raw, channels, valid, s->in, at);
    for (int c = 0; c < channels; c++)
        memset(s->in[c] + at + valid, 0, (size_t)(n - valid) * sizeof(float));
}

/* Packs one stripe of the current output chunk. */
static void pack(void *context, int64_t stripe, int worker) {
    gc_stream *s = context;
    const gc_chunk *chunk = s->current;
    int channels = s->plan->ir->outputs;
    int64_t at = stripe * STRIPE, n = gc_min(STRIPE, chunk->out_frames - at);
    char *raw = (char *)chunk->out + at * channels * gc_pcm_bytes(s->out_format);
    gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){s->out_format, raw, &s->overs[worker]}, (const float *const *)s->out,
                at, channels, n);
}

/* Computes one chunk and records its times. */
static void compute(gc_stream *s, gc_chunk *chunk) {
    const gpuconv_plan *plan = s->plan;
    double begin = gc_now();
    s->current = chunk;
    gc_pool_run(s->pool, unpack, s, gc_divide_up(plan->choice.chunk, STRIPE));
    gc_section_run(s->convolver, s->pool, s->in, s->out, chunk->out_frames);
    gc_pool_run(s->pool, pack, s, gc_divide_up(chunk->out_frames, STRIPE));
    for (int c = 0; c < plan->ir->inputs; c++)
        memmove(s->in[c] - s->history, s->in[c] + plan->choice.chunk - s->history, (size_t)s->history * sizeof(float));
    double end = gc_now();
    gc_stream_stats *stats = &s->stats;
    stats->compute += end - begin;
    if (stats->timed_chunks < GC_TIMELINE)
        stats->times[stats->timed_chunks++] = (gc_chunk_times){.compute = {begin - s->started, end - s->started}};
    stats->chunks++;
}

/* The stream's thread: computes submitted chunks until the stream is finished, stopped or cancelled. */
static void *run_thread(void *argument) {
    gc_stream *s = argument;
    gc_flush_subnormals();
    gpuconv_cancel_set(s->cancel);
    for (int n; (n = gc_slot_queue_take(&s->chunks->queue)) >= 0;) {
        compute(s, &s->chunks->slot[n]);
        if (gc_cancelled()) { /* the chunk is incomplete */
            gc_slot_queue_stop(&s->chunks->queue);
            break;
        }
        gc_slot_queue_finish(&s->chunks->queue);
    }
    return NULL;
}

/* Stops the thread and waits for its end. */
static void stop_thread(gc_stream *s) {
    if (!s->running)
        return;
    gc_slot_queue_stop(&s->chunks->queue);
    pthread_join(s->thread, NULL);
    s->running = false;
}

static void free_stream(gc_stream *s) {
    if (!s)
        return;
    stop_thread(s);
    gc_section_free(s->convolver);
    gc_pool_free(s->pool);
    free(s->in);
    free(s->out);
    free(s->memory);
    free(s->overs);
    free(s);
}

/* Bytes between two buffers of the same block, which no access may touch. */
enum { FENCE = GC_ALIGNMENT };

static int64_t fenced(int64_t bytes) {
    return gc_round_up(bytes, GC_ALIGNMENT) + FENCE;
}

/* Returns the next buffer of a block. */
static void *take_buffer(char **at, int64_t bytes) {
    char *buffer = *at;
    *at += fenced(bytes);
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(buffer + bytes, (size_t)(*at - buffer - bytes));
#endif
    return buffer;
}

/* Allocates the slots and the planar chunks in one block, so that it is large enough for huge pages: page faults were a
 * tenth to a sixth of the CPU time of a file of minutes. Returns false if there is too little memory. */
static bool allocate(gc_stream *s) {
    const gpuconv_plan *plan = s->plan;
    const int inputs = plan->ir->inputs, outputs = plan->ir->outputs;
    const int64_t in_stride = gc_round_up(s->history, 16) + gc_round_up(plan->choice.chunk, 16);
    const int64_t out_stride = gc_round_up(plan->choice.chunk, 16);
    const int64_t planar_in = inputs * in_stride * (int64_t)sizeof(float);
    const int64_t planar_out = outputs * out_stride * (int64_t)sizeof(float);
    const int64_t raw_in = plan->choice.chunk * inputs * gc_pcm_bytes(s->in_format);
    const int64_t raw_out = plan->choice.chunk * outputs * gc_pcm_bytes(s->out_format);
    s->in = gc_calloc(inputs, sizeof *s->in);
    s->out = gc_calloc(outputs, sizeof *s->out);
    s->overs = gc_calloc(plan->device.threads, sizeof *s->overs);
    s->memory =
        gc_calloc(1, fenced(planar_in) + fenced(planar_out) + plan->choice.slots * (fenced(raw_in) + fenced(raw_out)));
    if (!s->in || !s->out || !s->overs || !s->memory)
        return false;
    char *at = s->memory;
    float *in = take_buffer(&at, planar_in), *out = take_buffer(&at, planar_out);
    for (int i = 0; i < plan->choice.slots; i++) {
        s->chunks->slot[i].in = take_buffer(&at, raw_in);
        s->chunks->slot[i].out = take_buffer(&at, raw_out);
    }
    for (int c = 0; c < inputs; c++)
        s->in[c] = in + c * in_stride + gc_round_up(s->history, 16);
    for (int c = 0; c < outputs; c++)
        s->out[c] = out + c * out_stride;
    return true;
}

static gpuconv_status start_thread(gc_stream *s, gpuconv_error *error) {
    int err = pthread_create(&s->thread, NULL, run_thread, s);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the thread of the CPU backend: %s", strerror(err));
    s->running = true;
    s->started = gc_now();
    return GPUCONV_OK;
}

/* Refuses a convolution that needs more memory than is free, before any of it is taken. Returns MEMORY with the sizes.
 */
static gpuconv_status check_memory(const gpuconv_plan *plan, gpuconv_error *error) {
    const double floor = 0x1p28; /* the estimate counts for large convolutions only */
    const double left = plan->choice.bytes > floor ? (double)gc_memory_available() : HUGE_VAL;
    if (plan->choice.bytes <= left)
        return GPUCONV_OK;
    return gc_fail(
        error, GPUCONV_ERROR_MEMORY,
        "the convolution of %d x %d channels with %d routes of %lld frames needs %.3g GB of memory, and %.3g "
        "GB are free; shorten the response, or convolve groups of outputs one after the other",
        plan->ir->inputs, plan->ir->outputs, plan->ir->routes, (long long)plan->ir->frames, plan->choice.bytes * 1e-9,
        left * 1e-9);
}

static gpuconv_status new_stream(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_chunks *chunks, gc_stream **stream,
                                 gpuconv_error *error) {
    *stream = NULL;
    double begin = gc_now();
    gc_stream *s = gc_calloc(1, sizeof *s);
    if (!s)
        return gc_fail_memory(error, "the CPU backend");
    s->plan = plan;
    s->chunks = chunks;
    s->cancel = gc_cancel_flag();
    s->in_format = in;
    s->out_format = out;
    s->history = gc_schedule_overlap(&plan->choice.schedule);
    gpuconv_status status = check_memory(plan, error);
    s->pool = status ? NULL : gc_pool_new(plan->device.threads);
    s->convolver = s->pool ? gc_section_new_whole(plan, s->pool) : NULL;
    if (!status)
        status = s->convolver && allocate(s) ? start_thread(s, error) : gc_fail_memory(error, "the convolution");
    if (status) {
        free_stream(s);
        return status;
    }
    s->stats.setup = gc_now() - begin;
    *stream = s;
    return GPUCONV_OK;
}

static gpuconv_status reset(gc_stream *s) {
    stop_thread(s);
    gc_slot_queue_reset(&s->chunks->queue);
    gc_section_reset(s->convolver);
    for (int c = 0; c < s->plan->ir->inputs; c++)
        memset(s->in[c] - s->history, 0, (size_t)s->history * sizeof(float));
    memset(s->overs, 0, (size_t)s->plan->device.threads * sizeof *s->overs);
    s->stats = (gc_stream_stats){.setup = s->stats.setup};
    return start_thread(s, NULL);
}

static void measure(gc_stream *s, gc_stream_stats *stats) {
    *stats = s->stats;
    for (int w = 0; w < s->plan->device.threads; w++) {
        stats->overs.clipped += s->overs[w].clipped;
        stats->overs.peak = s->overs[w].peak > stats->overs.peak ? s->overs[w].peak : stats->overs.peak;
    }
}

static gpuconv_status probe(const gpuconv_config *config, gc_device *device, gpuconv_error *error) {
    (void)error;
    *device = (gc_device){.threads = config->threads ? config->threads : gc_processor_count()};
    gc_os_processor_name(device->name, sizeof device->name);
    return GPUCONV_OK;
}

static gc_costs costs(const gc_device *device) {
    return gc_costs_of_cpu(device->name);
}

static const gc_stream_executor streams = {
    .new = new_stream,
    .reset = reset,
    .measure = measure,
    .free = free_stream,
};

const gc_backend gc_backend_cpu = {
    .id = GPUCONV_BACKEND_CPU,
    .algorithms = gc_cpu_algorithms,
    .probe = probe,
    .costs = costs,
    .stream = &streams,
    .rows = &gc_rows_cpu,
    .batch = &gc_batch_cpu,
};
