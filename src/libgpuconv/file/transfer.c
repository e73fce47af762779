/*
 * From file to file in constant memory:
 *
 *      reader (this thread)  ->  engine's chunks in flight  ->  writer (a thread)
 *
 * Both sides handle samples as the files store them. Whichever side fails first stops the engine, which wakes the
 * other. What fits one chunk, tail included, needs no second thread: it is read, computed and written in turn.
 */
#include "transfer.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static gpuconv_status engine_failed(const gc_transfer *t, gpuconv_status status, gpuconv_error *error) {
    return gc_fail(error, status, "%s", gc_engine_failure(t->engine, status));
}

static gpuconv_status interrupted(const gc_transfer *t, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", t->output);
}

static bool cancelled(const gc_transfer *t) {
    return t->cancel && *t->cancel;
}

/* Interleaved frames to the file, in its own format. */
static gpuconv_status put(gc_transfer *t, const void *frames, int64_t count, gpuconv_error *error) {
    if (count == 0)
        return GPUCONV_OK;
    double begin = gc_now();
    const void *raw = frames;
    if (t->convert) {
        /* The engine's buffer is ours until it is given back; dither may be added in place. */
        gc_dither_pack(&t->pack, (float *)frames, count * t->outputs, t->raw, &t->overs);
        raw = t->raw;
    }
    gpuconv_status status = gc_writer_write(t->writer, raw, count, error);
    t->write_seconds += gc_now() - begin;
    t->written += count;
    return status;
}

/* One frame behind the last one that is loud enough; 0: none is. */
static int64_t audible(const gc_transfer *t, const float *samples, int64_t frames) {
    for (int64_t i = frames * t->outputs - 1; i >= 0; i--)
        if (!(fabsf(samples[i]) < t->floor))
            return i / t->outputs + 1;
    return 0;
}

static gpuconv_status put_held(gc_transfer *t, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t at = 0; at < t->held_frames && !status; at += t->chunk)
        status = put(t, t->held + at * t->outputs, gc_min(t->chunk, t->held_frames - at), error);
    t->held_frames = 0;
    return status;
}

static gpuconv_status hold(gc_transfer *t, const float *samples, int64_t frames, gpuconv_error *error) {
    if (t->held_frames + frames > t->held_room) {
        int64_t room = gc_max(2 * t->held_room, t->held_frames + frames);
        float *larger = gc_calloc(room, t->outputs * (int64_t)sizeof *larger);
        if (!larger)
            return gc_fail_memory(error, t->output);
        if (t->held_frames)
            memcpy(larger, t->held, (size_t)(t->held_frames * t->outputs) * sizeof *larger);
        free(t->held);
        t->held = larger;
        t->held_room = room;
    }
    memcpy(t->held + t->held_frames * t->outputs, samples, (size_t)(frames * t->outputs) * sizeof *samples);
    t->held_frames += frames;
    return GPUCONV_OK;
}

/* Frames of the tail: up to the last loud one they go out, with those held before; the rest is held. */
static gpuconv_status put_tail(gc_transfer *t, const float *samples, int64_t frames, gpuconv_error *error) {
    int64_t loud = audible(t, samples, frames);
    gpuconv_status status = GPUCONV_OK;
    if (loud > 0) {
        status = put_held(t, error);
        if (!status)
            status = put(t, samples, loud, error);
    }
    return status ? status : hold(t, samples + loud * t->outputs, frames - loud, error);
}

/* What is wanted of the frames that the engine just gave. An engine gives no frame behind the input's last before the
 * input has ended, so `total` is known by the time it matters. */
static gpuconv_status put_wanted(gc_transfer *t, const void *raw, int64_t frames, gpuconv_error *error) {
    int64_t frame = t->outputs * (t->convert ? (int64_t)sizeof(float) : gc_pcm_bytes(t->pack.format));
    int64_t total = atomic_load(&t->total), from = gc_max(0, t->skip - t->taken);
    int64_t to = gc_min(frames, total - t->taken), middle = to;
    if (t->floor > 0 && total < INT64_MAX)
        middle = gc_max(gc_min(to, t->input - t->taken), from);
    gpuconv_status status = GPUCONV_OK;
    if (from < middle)
        status = put(t, (const char *)raw + from * frame, middle - from, error);
    if (!status && middle < to && from < to)
        status = put_tail(t, (const float *)raw + middle * t->outputs, to - middle, error);
    t->taken += frames;
    return status;
}

/* What is finished, until nothing more will be. */
static gpuconv_status write_all(gc_transfer *t, gpuconv_error *error) {
    for (;;) {
        const void *raw;
        int64_t frames;
        gpuconv_status status = gc_engine_take(t->engine, &raw, &frames);
        if (status)
            return engine_failed(t, status, error);
        if (frames == 0)
            return GPUCONV_OK;
        status = put_wanted(t, raw, frames, error);
        gc_engine_release(t->engine);
        if (status)
            return status;
    }
}

static void *write_out(void *argument) {
    gc_transfer *t = argument;
    t->write_status = write_all(t, &t->write_error);
    if (t->write_status)
        gc_engine_stop(t->engine);
    return NULL;
}

/* One chunk in; *more: another may follow. */
static gpuconv_status read_chunk(gc_transfer *t, bool *more, gpuconv_error *error) {
    void *raw;
    int64_t got, want = t->limit < 0 ? t->chunk : gc_min(t->chunk, t->limit - t->read);
    if (cancelled(t))
        return interrupted(t, error);
    gpuconv_status status = gc_engine_acquire(t->engine, &raw);
    if (status)
        return engine_failed(t, status, error);
    double begin = gc_now();
    status = gc_reader_read(t->reader, raw, want, &got, error);
    t->read_seconds += gc_now() - begin;
    if (status)
        return status;
    t->read += got;
    *more = got == t->chunk;
    if (!*more) {
        t->input = t->read;
        atomic_store(&t->total, t->read + t->after);
    }
    if (t->progress)
        t->progress(t->context, t->read);
    status = gc_engine_submit(t->engine, got);
    return status ? engine_failed(t, status, error) : GPUCONV_OK;
}

static gpuconv_status read_in(gc_transfer *t, bool more, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    while (more && !status)
        status = read_chunk(t, &more, error);
    if (!status && (status = gc_engine_flush(t->engine)) != GPUCONV_OK)
        status = engine_failed(t, status, error);
    return status;
}

/* Both sides at once. A failure of the writer shows on the reader's side as CANCELLED, so the writer's word goes first,
 * unless it was itself only woken. */
static gpuconv_status both_sides(gc_transfer *t, gpuconv_error *error) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_out, t) != 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "no thread to be had for writing");
    gpuconv_status status = read_in(t, true, error);
    if (status)
        gc_engine_stop(t->engine);
    pthread_join(thread, NULL);
    if (t->write_status && (!status || t->write_status != GPUCONV_ERROR_CANCELLED)) {
        *error = t->write_error;
        status = t->write_status;
    }
    return status;
}

static gpuconv_status pass(gc_transfer *t, gpuconv_error *error) {
    int64_t frames = gc_reader_info(t->reader)->frames;
    if (t->limit >= 0 && (frames < 0 || frames > t->limit))
        frames = t->limit;
    gpuconv_status status;
    if (frames >= 0 && frames + gc_engine_tail(t->engine) < t->chunk) {
        bool more = false;
        status = read_chunk(t, &more, error);
        if (!status && more) /* longer than its header said */
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "the input is longer than it says");
        if (!status)
            status = read_in(t, false, error);
        if (!status)
            status = write_all(t, error);
    } else {
        status = both_sides(t, error);
    }
    return !status && cancelled(t) ? interrupted(t, error) : status;
}

gpuconv_status gc_transfer_run(gc_transfer *t, gpuconv_error *error) {
    t->pack = gc_dither_begin(gc_writer_pcm(t->writer), t->dither);
    t->outputs = gc_writer_channels(t->writer);
    atomic_store(&t->total, INT64_MAX);
    if (t->convert && !(t->raw = gc_calloc(t->chunk, t->outputs * (int64_t)sizeof(float))))
        return gc_fail_memory(error, t->output);
    gpuconv_status status = pass(t, error);
    if (!status && t->written == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: nothing is left to write", t->output);
    free(t->raw);
    free(t->held);
    t->raw = t->held = NULL;
    return status;
}
