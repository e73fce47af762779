/*
 * The engine: one running convolution. It counts frames, cuts the input into chunks and computes where the tail ends.
 *
 * gpuconv_engine_process keeps the output slots - 1 chunks behind the input. Input and output both advance in chunks
 * from frame 0, so the slot that is filled next has just been released, and the single calling thread never deadlocks.
 */
#include "engine.h"

#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

struct gpuconv_engine {
    gpuconv_plan *plan;
    const gc_stream_executor *executor;
    gc_stream *stream;
    gc_chunks chunks;
    int64_t submitted_in, submitted_out; /* input frames submitted; output frames that they give */
    bool ended;                          /* the input has ended: its length is submitted_in */

    /* The planar interface: */
    float *in_chunk; /* acquired input chunk, or NULL */
    int64_t in_filled;
    const float *out_chunk; /* output chunk being copied, or NULL */
    int64_t out_copied, out_frames;
    int64_t emitted; /* output frames given to the caller */
    bool draining;   /* gpuconv_engine_drain was called */
    bool broken;     /* a call failed: only a reset helps */
};

gpuconv_status gc_engine_new(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gpuconv_engine **engine,
                             gpuconv_error *error) {
    *engine = NULL;
    gpuconv_engine *e = gc_calloc(1, sizeof *e);
    if (!e)
        return gc_fail_memory(error, "the engine");
    e->plan = gc_plan_hold(plan);
    e->executor = plan->backend->stream;
    gc_slot_queue_init(&e->chunks.queue, plan->choice.slots);
    gpuconv_status status = e->executor->new (e->plan, in, out, &e->chunks, &e->stream, error);
    if (status) {
        gpuconv_engine_free(e);
        return status;
    }
    *engine = e;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_engine_new(const gpuconv_plan *plan, gpuconv_engine **engine, gpuconv_error *error) {
    gc_pcm floats = {GC_F32, 32};
    return gc_begin(engine, plan, __func__, error) ? gc_engine_new(plan, floats, floats, engine, error)
                                                   : GPUCONV_ERROR_ARGUMENT;
}

void gpuconv_engine_free(gpuconv_engine *e) {
    if (!e)
        return;
    if (e->stream)
        e->executor->free(e->stream);
    gc_slot_queue_destroy(&e->chunks.queue);
    gpuconv_plan_free(e->plan);
    free(e);
}

/* Stops the stream if a call of its backend has failed. */
static gpuconv_status check(gpuconv_engine *e, gpuconv_status status) {
    if (status)
        gc_engine_stop(e);
    return status;
}

/* Returns why the queue has stopped, or OK if it has not. slot: of a call of the queue. */
static gpuconv_status stop_reason(const gpuconv_engine *e, int slot) {
    if (slot != GC_SLOT_QUEUE_STOPPED)
        return GPUCONV_OK;
    return e->executor->failure && *e->executor->failure(e->stream) ? GPUCONV_ERROR_DEVICE : GPUCONV_ERROR_CANCELLED;
}

gpuconv_status gpuconv_engine_reset(gpuconv_engine *e) {
    if (!e)
        return GPUCONV_ERROR_ARGUMENT;
    e->submitted_in = e->submitted_out = e->in_filled = e->out_copied = e->out_frames = e->emitted = 0;
    e->ended = e->draining = e->broken = false;
    e->in_chunk = NULL;
    e->out_chunk = NULL;
    return check(e, e->executor->reset(e->stream));
}

gpuconv_status gc_engine_acquire(gpuconv_engine *e, void **raw) {
    const int slot = gc_slot_queue_acquire(&e->chunks.queue);
    *raw = slot < 0 ? NULL : e->chunks.slot[slot].in;
    return stop_reason(e, slot);
}

/* Passes the acquired slot on, of which `out` frames are to be computed. */
static gpuconv_status pass_on(gpuconv_engine *e, int64_t in, int64_t out) {
    const int slot = gc_slot_queue_acquire(&e->chunks.queue);
    gpuconv_status status = stop_reason(e, slot);
    if (status)
        return status;
    e->chunks.slot[slot].in_frames = in;
    e->chunks.slot[slot].out_frames = out;
    if (e->executor->submit && (status = check(e, e->executor->submit(e->stream, slot))) != GPUCONV_OK)
        return status;
    gc_slot_queue_fill(&e->chunks.queue);
    if (e->executor->submit)
        gc_slot_queue_finish(&e->chunks.queue); /* the device computes it; no thread takes it */
    return GPUCONV_OK;
}

/* Returns the length of the result, once the input has ended. */
static int64_t total_frames(const gpuconv_engine *e) {
    return e->submitted_in > 0 ? e->submitted_in + e->plan->ir->frames - 1 : 0;
}

gpuconv_status gc_engine_submit(gpuconv_engine *e, int64_t frames) {
    int64_t chunk = e->plan->choice.chunk, out = chunk;
    e->submitted_in += frames;
    if (frames < chunk) {
        e->ended = true;
        out = gc_min(chunk, total_frames(e) - e->submitted_out);
    }
    if (out <= 0)
        return GPUCONV_OK;
    e->submitted_out += out;
    return pass_on(e, frames, out);
}

gpuconv_status gc_engine_flush(gpuconv_engine *e) {
    e->ended = true;
    while (e->submitted_out < total_frames(e)) {
        void *raw;
        gpuconv_status status = gc_engine_acquire(e, &raw);
        if (!status)
            status = gc_engine_submit(e, 0);
        if (status)
            return status;
    }
    gc_slot_queue_close(&e->chunks.queue);
    return GPUCONV_OK;
}

gpuconv_status gc_engine_take(gpuconv_engine *e, const void **raw, int64_t *frames) {
    const int slot = gc_slot_queue_wait(&e->chunks.queue);
    gpuconv_status status = stop_reason(e, slot);
    if (slot >= 0 && e->executor->wait)
        status = check(e, e->executor->wait(e->stream, slot));
    const bool computed = slot >= 0 && !status;
    *raw = computed ? e->chunks.slot[slot].out : NULL;
    *frames = computed ? e->chunks.slot[slot].out_frames : 0;
    return status;
}

void gc_engine_release(gpuconv_engine *e) {
    gc_slot_queue_release(&e->chunks.queue);
}

void gc_engine_stop(gpuconv_engine *e) {
    gc_slot_queue_stop(&e->chunks.queue);
}

int64_t gc_engine_tail(const gpuconv_engine *e) {
    return e->plan->ir->frames - 1;
}

const char *gc_engine_failure(const gpuconv_engine *e, gpuconv_status status) {
    const char *reason = e->executor->failure ? e->executor->failure(e->stream) : "";
    return status == GPUCONV_ERROR_DEVICE && *reason ? reason : gpuconv_status_text(status);
}

void gc_engine_measure(gpuconv_engine *e, gc_stream_stats *stats) {
    e->executor->measure(e->stream, stats);
}

/* Copies up to `capacity` computed frames to out[channel] + at; blocks until they are computed. */
static gpuconv_status emit(gpuconv_engine *e, float *const *out, int64_t at, int64_t capacity, int64_t *taken) {
    int channels = e->plan->ir->outputs;
    *taken = 0;
    while (*taken < capacity) {
        if (!e->out_chunk) {
            const void *raw;
            gpuconv_status status = gc_engine_take(e, &raw, &e->out_frames);
            if (status)
                return status;
            if (e->out_frames == 0)
                return GPUCONV_OK;
            e->out_chunk = raw;
            e->out_copied = 0;
        }
        int64_t n = gc_min(capacity - *taken, e->out_frames - e->out_copied);
        const float *from = e->out_chunk + e->out_copied * channels;
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < n; i++)
                out[c][at + *taken + i] = from[i * channels + c];
        *taken += n;
        e->out_copied += n;
        e->emitted += n;
        if (e->out_copied == e->out_frames) {
            gc_engine_release(e);
            e->out_chunk = NULL;
        }
    }
    return GPUCONV_OK;
}

/* Copies the input into chunks, submits each full chunk, and emits the output up to the plan's latency. */
static gpuconv_status process(gpuconv_engine *e, const float *const *in, int64_t frames, float *const *out,
                              int64_t *produced) {
    int64_t chunk = e->plan->choice.chunk, lag = gpuconv_plan_latency(e->plan);
    int channels = e->plan->ir->inputs;
    for (int64_t at = 0; at < frames;) {
        gpuconv_status status;
        if (!e->in_chunk) {
            void *raw;
            if ((status = gc_engine_acquire(e, &raw)) != GPUCONV_OK)
                return status;
            e->in_chunk = raw;
            e->in_filled = 0;
        }
        int64_t n = gc_min(frames - at, chunk - e->in_filled);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < n; i++)
                e->in_chunk[(e->in_filled + i) * channels + c] = in[c][at + i];
        e->in_filled += n;
        at += n;
        int64_t received = e->submitted_in + e->in_filled;
        if (e->in_filled == chunk) {
            e->in_chunk = NULL;
            if ((status = gc_engine_submit(e, chunk)) != GPUCONV_OK)
                return status;
        }
        int64_t due = received - lag - e->emitted, taken;
        if (due > 0) {
            status = emit(e, out, *produced, due, &taken);
            *produced += taken;
            if (status)
                return status;
        }
    }
    return GPUCONV_OK;
}

gpuconv_status gpuconv_engine_process(gpuconv_engine *e, const float *const *in, int64_t frames, float *const *out,
                                      int64_t *produced) {
    if (produced)
        *produced = 0;
    if (!e || !in || !out || !produced)
        return GPUCONV_ERROR_ARGUMENT;
    if (e->broken || e->draining)
        return GPUCONV_ERROR_STATE;
    if (frames < 0)
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = process(e, in, frames, out, produced);
    e->broken = status != GPUCONV_OK;
    return status;
}

/* Submits the last partial chunk and empty chunks for the tail, and emits up to `capacity` frames. */
static gpuconv_status drain(gpuconv_engine *e, float *const *out, int64_t capacity, int64_t *produced) {
    gpuconv_status status;
    if (!e->ended) {
        int64_t rest = e->in_chunk ? e->in_filled : 0;
        e->ended = true;
        if (rest > 0 && (status = gc_engine_submit(e, rest)) != GPUCONV_OK)
            return status;
        e->in_chunk = NULL;
    }
    while (*produced < capacity && e->emitted < total_frames(e)) {
        /* Submit as long as a slot is free. Acquiring would deadlock otherwise: only this loop releases slots. */
        while (e->submitted_out < total_frames(e) &&
               e->submitted_out - e->emitted <= (e->plan->choice.slots - 1) * e->plan->choice.chunk) {
            void *raw;
            if ((status = gc_engine_acquire(e, &raw)) != GPUCONV_OK || (status = gc_engine_submit(e, 0)) != GPUCONV_OK)
                return status;
        }
        int64_t boundary = e->plan->choice.chunk - e->emitted % e->plan->choice.chunk, taken;
        int64_t want = gc_min(gc_min(capacity - *produced, boundary), total_frames(e) - e->emitted);
        status = emit(e, out, *produced, want, &taken);
        *produced += taken;
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

gpuconv_status gpuconv_engine_drain(gpuconv_engine *e, float *const *out, int64_t capacity, int64_t *produced) {
    if (produced)
        *produced = 0;
    if (!e || !out || !produced)
        return GPUCONV_ERROR_ARGUMENT;
    if (e->broken)
        return GPUCONV_ERROR_STATE;
    if (capacity < 0)
        return GPUCONV_ERROR_ARGUMENT;
    e->draining = true;
    gpuconv_status status = drain(e, out, capacity, produced);
    e->broken = status != GPUCONV_OK;
    return status;
}
