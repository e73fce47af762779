/*
 * The transfer from file to file in constant memory:
 *
 *      reader (calling thread)  ->  chunks in flight in the engine  ->  writer (its own thread)
 *
 * Reader and writer handle samples in the formats of the files. A side that fails stops the engine, which wakes the
 * other side. An input that fits into one chunk, tail included, is read, computed and written on the calling thread.
 */
#include "transfer.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A running transfer. */
typedef struct transfer {
    gc_transfer *t;
    gpuconv_status write_status; /* of the writer thread */
    gpuconv_error write_error;
} transfer;

static gpuconv_status fail_cancelled(const transfer *p, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", p->t->output);
}

static bool is_cancelled(const transfer *p) {
    return gc_flag_is_raised(p->t->cancel);
}

/* Sets the error for a status of the engine. The engine's threads check the cancel flag too and may report it first. */
static gpuconv_status fail_engine(const transfer *p, gpuconv_status status, gpuconv_error *error) {
    if (status == GPUCONV_ERROR_CANCELLED && is_cancelled(p))
        return fail_cancelled(p, error);
    return gc_fail(error, status, "%s", gc_engine_failure(p->t->engine, status));
}

/* Writes interleaved frames to the file, converted if necessary. */
static gpuconv_status write_frames(gc_transfer *t, const void *frames, int64_t count, gpuconv_error *error) {
    if (count == 0)
        return GPUCONV_OK;
    double begin = gc_now();
    const void *raw = frames;
    if (t->convert) {
        /* The engine's buffer belongs to this thread until it is released: dither is added in place. */
        gc_dither_pack(&t->pack, (float *)frames, count * t->outputs, t->raw, &t->overs);
        raw = t->raw;
    }
    gpuconv_status status = gc_writer_write(t->writer, raw, count, error);
    t->write_seconds += gc_now() - begin;
    t->written += count;
    return status;
}

/* Returns the number of frames up to the last one that reaches the floor; 0 if none does. */
static int64_t audible_frames(const gc_transfer *t, const float *samples, int64_t frames) {
    for (int64_t i = frames * t->outputs - 1; i >= 0; i--)
        if (!(fabsf(samples[i]) < t->window.floor))
            return i / t->outputs + 1;
    return 0;
}

/* Writes the held frames. */
static gpuconv_status write_held(gc_transfer *t, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t at = 0; at < t->held_frames && !status; at += t->chunk)
        status = write_frames(t, t->held + at * t->outputs, gc_min(t->chunk, t->held_frames - at), error);
    t->held_frames = 0;
    return status;
}

/* Appends frames of the tail to the held ones. */
static gpuconv_status hold(gc_transfer *t, const float *samples, int64_t frames, gpuconv_error *error) {
    if (frames == 0) /* the buffer may not exist yet */
        return GPUCONV_OK;
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

/* Writes the held frames and frames of the tail up to the last one that reaches the floor; holds the rest. */
static gpuconv_status write_tail(gc_transfer *t, const float *samples, int64_t frames, gpuconv_error *error) {
    int64_t loud = audible_frames(t, samples, frames);
    gpuconv_status status = GPUCONV_OK;
    if (loud > 0) {
        status = write_held(t, error);
        if (!status)
            status = write_frames(t, samples, loud, error);
    }
    return status ? status : hold(t, samples + loud * t->outputs, frames - loud, error);
}

gpuconv_status gc_transfer_put(gc_transfer *t, const void *raw, int64_t frames, gpuconv_error *error) {
    int64_t frame = t->outputs * (t->convert ? (int64_t)sizeof(float) : gc_pcm_bytes(t->pack.format));
    int64_t total = atomic_load(&t->total), from = gc_max(0, t->window.skip - t->computed);
    int64_t to = gc_min(frames, total - t->computed), middle = to;
    if (t->window.floor > 0 && total < INT64_MAX)
        middle = gc_max(gc_min(to, t->input - t->computed), from);
    gpuconv_status status = GPUCONV_OK;
    if (from < middle)
        status = write_frames(t, (const char *)raw + from * frame, middle - from, error);
    if (!status && middle < to && from < to)
        status = write_tail(t, (const float *)raw + middle * t->outputs, to - middle, error);
    t->computed += frames;
    return status;
}

static bool is_at_limit(const transfer *p) {
    return p->t->limit >= 0 && p->t->computed >= p->t->limit;
}

/* Writes output chunks until the end of the result, or of the part that the caller wants. */
static gpuconv_status write_all(transfer *p, gpuconv_error *error) {
    for (;;) {
        const void *raw;
        int64_t frames;
        gpuconv_status status = gc_engine_take(p->t->engine, &raw, &frames);
        if (status)
            return fail_engine(p, status, error);
        if (frames == 0)
            return GPUCONV_OK;
        status = gc_transfer_put(p->t, raw, frames, error);
        gc_engine_release(p->t->engine);
        if (status || is_at_limit(p))
            return status;
    }
}

/* The writer thread. */
static void *run_writer(void *argument) {
    transfer *p = argument;
    p->write_status = write_all(p, &p->write_error);
    if (p->write_status || is_at_limit(p))
        gc_engine_stop(p->t->engine);
    return NULL;
}

/* Reads and submits one chunk; *more is false if the input has ended. */
static gpuconv_status read_chunk(transfer *p, bool *more, gpuconv_error *error) {
    void *raw;
    int64_t got;
    if (is_cancelled(p))
        return fail_cancelled(p, error);
    gpuconv_status status = gc_engine_acquire(p->t->engine, &raw);
    if (status)
        return fail_engine(p, status, error);
    double begin = gc_now();
    status = gc_reader_read(p->t->reader, raw, p->t->chunk, &got, error);
    p->t->read_seconds += gc_now() - begin;
    if (status)
        return status;
    p->t->read += got;
    *more = got == p->t->chunk;
    if (!*more)
        gc_transfer_end_input(p->t);
    if (p->t->progress)
        p->t->progress(p->t->context, p->t->read);
    status = gc_engine_submit(p->t->engine, got);
    return status ? fail_engine(p, status, error) : GPUCONV_OK;
}

/* Reads and submits chunks while `more`, then the tail. */
static gpuconv_status read_all(transfer *p, bool more, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    while (more && !status)
        status = read_chunk(p, &more, error);
    if (!status && (status = gc_engine_flush(p->t->engine)) != GPUCONV_OK)
        status = fail_engine(p, status, error);
    return status;
}

/* Reads on this thread and writes on another one. A writer that fails makes the reader fail with CANCELLED, so the
 * writer's status is returned unless it is itself CANCELLED. */
static gpuconv_status run_threads(transfer *p, gpuconv_error *error) {
    pthread_t thread;
    int err = pthread_create(&thread, NULL, run_writer, p);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the writer thread: %s", strerror(err));
    gpuconv_status status = read_all(p, true, error);
    if (status)
        gc_engine_stop(p->t->engine);
    pthread_join(thread, NULL);
    if (p->write_status && (!status || p->write_status != GPUCONV_ERROR_CANCELLED)) {
        *error = p->write_error;
        status = p->write_status;
    }
    return status == GPUCONV_ERROR_CANCELLED && is_at_limit(p) ? GPUCONV_OK : status;
}

/* Moves all chunks, on one thread or two. */
static gpuconv_status run(transfer *p, gpuconv_error *error) {
    int64_t frames = gc_reader_info(p->t->reader)->frames;
    gpuconv_status status;
    if (frames >= 0 && frames + gc_engine_tail(p->t->engine) < p->t->chunk) {
        bool more = false;
        status = read_chunk(p, &more, error);
        if (!status && more) /* longer than its header says */
            status = gc_fail(error, GPUCONV_ERROR_FORMAT, "the input is longer than its header says");
        if (!status)
            status = read_all(p, false, error);
        if (!status)
            status = write_all(p, error);
    } else {
        status = run_threads(p, error);
    }
    return !status && is_cancelled(p) ? fail_cancelled(p, error) : status;
}

gpuconv_status gc_window_find(const gc_window_wish *w, gc_window *window, gpuconv_error *error) {
    const gpuconv_job *job = w->job;
    const double kept = (double)w->lead + job->tail * w->rate;
    window->floor = job->tail_floor < 0 ? (float)pow(10, job->tail_floor / 20) : 0;
    if (job->mode == GPUCONV_MODE_FULL) {
        window->skip = w->lead;
        window->after = kept < (double)w->tail ? (int64_t)llrint(kept) : w->tail;
    } else if (job->mode == GPUCONV_MODE_SAME) {
        window->skip = window->after = w->tail / 2;
    } else {
        window->skip = w->tail;
        window->after = 0;
        if (w->frames >= 0 && w->frames <= w->tail)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: of %lld frames none are valid with a response of %lld frames", w->input,
                           (long long)w->frames, (long long)w->tail + 1);
    }
    return GPUCONV_OK;
}

int64_t gc_window_frames(const gc_window *w, int64_t input_frames) {
    return input_frames < 0 || w->floor > 0 ? -1 : input_frames + w->after - w->skip;
}

void gc_transfer_keep(gc_transfer *t, const gc_window *window, const gpuconv_ir *ir, bool dither) {
    t->window = *window;
    t->dither = dither;
    t->convert = dither || window->floor > 0 || window->skip > 0 || window->after < gpuconv_ir_frames(ir) - 1;
}

gpuconv_status gc_transfer_open(gc_transfer *t, const gpuconv_job *job, int channels, bool same_channels,
                                int64_t frames, gpuconv_error *error) {
    gc_audio_info like = *gc_reader_info(t->reader);
    like.speakers = same_channels ? like.speakers : 0;
    const gc_output_options wish = {
        .format = job->format, .encoding = job->encoding, .compression = job->compression, .cancel = gc_cancel_flag()};
    const gpuconv_status status = gc_writer_new(job->output, &wish, &like, channels, frames, &t->writer, error);
    return status ? status : gc_metadata_copy(t->reader, t->writer, same_channels, error);
}

gpuconv_status gc_transfer_begin(gc_transfer *t, gpuconv_error *error) {
    t->pack = gc_dither_begin(gc_writer_pcm(t->writer), t->dither);
    t->outputs = gc_writer_channels(t->writer);
    atomic_init(&t->total, INT64_MAX);
    t->raw = t->convert ? gc_calloc(t->chunk, t->outputs * (int64_t)sizeof(float)) : NULL;
    return t->raw || !t->convert ? GPUCONV_OK : gc_fail_memory(error, t->output);
}

void gc_transfer_end_input(gc_transfer *t) {
    t->input = t->read;
    atomic_store(&t->total, t->read + t->window.after);
}

void gc_transfer_end(gc_transfer *t) {
    free(t->raw);
    free(t->held);
    t->raw = t->held = NULL;
}

gpuconv_status gc_transfer_run(gc_transfer *t, gpuconv_error *error) {
    transfer p = {.t = t};
    gpuconv_status status = gc_transfer_begin(t, error);
    if (!status)
        status = run(&p, error);
    if (!status && t->written == 0 && t->limit < 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: nothing is left to write", t->output);
    gc_transfer_end(t);
    return status;
}
