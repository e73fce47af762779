/*
 * One running convolution: counts frames, cuts them into chunks, knows where the tail ends.
 *
 * gpuconv_engine_process keeps slots - 1 chunks between what went in and what comes out. Both sides step in chunks from
 * frame 0, so the slot to be filled next has just been emptied, and no call can wait for itself.
 */
#include "engine.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

struct gpuconv_engine {
    gpuconv_plan *plan;
    const gc_backend *backend;
    gc_stream *state;
    int64_t fed, planned; /* frames submitted; output frames that submitted chunks will give */
    bool ended;           /* the input's length is known: fed */
    /* of the planar interface: */
    float *filling;
    const float *emptying;
    int64_t filled, emptied, ready; /* frames in `filling`; taken from, and held in, `emptying` */
    int64_t emitted;
    bool flushed, failed;
};

gpuconv_status gc_engine_new(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gpuconv_engine **engine,
                             gpuconv_error *error) {
    *engine = NULL;
    gpuconv_engine *e = gc_calloc(1, sizeof *e);
    if (!e)
        return gc_fail_memory(error, "the engine");
    e->plan = gc_plan_hold(plan);
    e->backend = plan->backend;
    gpuconv_status status = e->backend->state(e->plan, in, out, &e->state, error);
    if (status) {
        gpuconv_engine_free(e);
        return status;
    }
    *engine = e;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_engine_new(const gpuconv_plan *plan, gpuconv_engine **engine, gpuconv_error *error) {
    gc_pcm floats = {GC_F32, 32};
    return gc_engine_new(plan, floats, floats, engine, error);
}

void gpuconv_engine_free(gpuconv_engine *e) {
    if (!e)
        return;
    if (e->state)
        e->backend->free(e->state);
    gpuconv_plan_free(e->plan);
    free(e);
}

gpuconv_status gpuconv_engine_reset(gpuconv_engine *e) {
    e->fed = e->planned = e->filled = e->emptied = e->ready = e->emitted = 0;
    e->ended = e->flushed = e->failed = false;
    e->filling = NULL;
    e->emptying = NULL;
    return e->backend->reset(e->state);
}

gpuconv_status gc_engine_acquire(gpuconv_engine *e, void **raw) {
    return e->backend->acquire(e->state, raw);
}

/* Output frames in all, once the input has ended. */
static int64_t total(const gpuconv_engine *e) {
    return e->fed > 0 ? e->fed + e->plan->ir->frames - 1 : 0;
}

gpuconv_status gc_engine_submit(gpuconv_engine *e, int64_t frames) {
    int64_t chunk = e->plan->chunk, out = chunk;
    e->fed += frames;
    if (frames < chunk) {
        e->ended = true;
        out = gc_min(chunk, total(e) - e->planned);
    }
    if (out <= 0)
        return GPUCONV_OK;
    e->planned += out;
    return e->backend->submit(e->state, frames, out);
}

gpuconv_status gc_engine_flush(gpuconv_engine *e) {
    e->ended = true;
    while (e->planned < total(e)) {
        void *raw;
        gpuconv_status status = gc_engine_acquire(e, &raw);
        if (!status)
            status = gc_engine_submit(e, 0);
        if (status)
            return status;
    }
    return e->backend->finish(e->state);
}

gpuconv_status gc_engine_take(gpuconv_engine *e, const void **raw, int64_t *frames) {
    return e->backend->wait(e->state, raw, frames);
}

void gc_engine_release(gpuconv_engine *e) {
    e->backend->release(e->state);
}

void gc_engine_stop(gpuconv_engine *e) {
    e->backend->stop(e->state);
}

int64_t gc_engine_tail(const gpuconv_engine *e) {
    return e->plan->ir->frames - 1;
}

const char *gc_engine_failure(const gpuconv_engine *e, gpuconv_status status) {
    const char *reason = e->backend->failure(e->state);
    return status == GPUCONV_ERROR_DEVICE && *reason ? reason : gpuconv_status_text(status);
}

void gc_engine_measure(gpuconv_engine *e, gc_stream_stats *measurement) {
    e->backend->measure(e->state, measurement);
}

/* Takes up to `capacity` frames of finished chunks to out[channel] + at. */
static gpuconv_status emit(gpuconv_engine *e, float *const *out, int64_t at, int64_t capacity, int64_t *taken) {
    int channels = e->plan->ir->outputs;
    *taken = 0;
    while (*taken < capacity) {
        if (!e->emptying) {
            const void *raw;
            gpuconv_status status = gc_engine_take(e, &raw, &e->ready);
            if (status)
                return status;
            if (e->ready == 0)
                return GPUCONV_OK;
            e->emptying = raw;
            e->emptied = 0;
        }
        int64_t n = gc_min(capacity - *taken, e->ready - e->emptied);
        const float *from = e->emptying + e->emptied * channels;
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < n; i++)
                out[c][at + *taken + i] = from[i * channels + c];
        *taken += n;
        e->emptied += n;
        e->emitted += n;
        if (e->emptied == e->ready) {
            gc_engine_release(e);
            e->emptying = NULL;
        }
    }
    return GPUCONV_OK;
}

static gpuconv_status process(gpuconv_engine *e, const float *const *in, int64_t frames, float *const *out,
                              int64_t *produced) {
    int64_t chunk = e->plan->chunk, lag = gpuconv_plan_latency(e->plan);
    int channels = e->plan->ir->inputs;
    for (int64_t at = 0; at < frames;) {
        gpuconv_status status;
        if (!e->filling) {
            void *raw;
            if ((status = gc_engine_acquire(e, &raw)) != GPUCONV_OK)
                return status;
            e->filling = raw;
            e->filled = 0;
        }
        int64_t n = gc_min(frames - at, chunk - e->filled);
        for (int c = 0; c < channels; c++)
            for (int64_t i = 0; i < n; i++)
                e->filling[(e->filled + i) * channels + c] = in[c][at + i];
        e->filled += n;
        at += n;
        int64_t given = e->fed + e->filled;
        if (e->filled == chunk) {
            e->filling = NULL;
            if ((status = gc_engine_submit(e, chunk)) != GPUCONV_OK)
                return status;
        }
        int64_t due = given - lag - e->emitted, taken;
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
    *produced = 0;
    if (e->failed || e->flushed)
        return GPUCONV_ERROR_STATE;
    if (frames < 0)
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = process(e, in, frames, out, produced);
    e->failed = status != GPUCONV_OK;
    return status;
}

static gpuconv_status drain(gpuconv_engine *e, float *const *out, int64_t capacity, int64_t *produced) {
    gpuconv_status status;
    if (!e->ended) {
        int64_t left = e->filling ? e->filled : 0;
        e->ended = true;
        if (left > 0 && (status = gc_engine_submit(e, left)) != GPUCONV_OK)
            return status;
        e->filling = NULL;
    }
    while (*produced < capacity && e->emitted < total(e)) {
        /* Keep the slots full, but never wait for one: they empty only through this very loop. */
        while (e->planned < total(e) && e->planned - e->emitted <= (e->plan->slots - 1) * e->plan->chunk) {
            void *raw;
            if ((status = gc_engine_acquire(e, &raw)) != GPUCONV_OK || (status = gc_engine_submit(e, 0)) != GPUCONV_OK)
                return status;
        }
        int64_t boundary = e->plan->chunk - e->emitted % e->plan->chunk, taken;
        int64_t want = gc_min(gc_min(capacity - *produced, boundary), total(e) - e->emitted);
        status = emit(e, out, *produced, want, &taken);
        *produced += taken;
        if (status)
            return status;
    }
    return GPUCONV_OK;
}

gpuconv_status gpuconv_engine_drain(gpuconv_engine *e, float *const *out, int64_t capacity, int64_t *produced) {
    *produced = 0;
    if (e->failed)
        return GPUCONV_ERROR_STATE;
    if (capacity < 0)
        return GPUCONV_ERROR_ARGUMENT;
    e->flushed = true;
    gpuconv_status status = drain(e, out, capacity, produced);
    e->failed = status != GPUCONV_OK;
    return status;
}
