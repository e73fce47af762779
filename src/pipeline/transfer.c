/*
 * From file to file in constant memory:
 *
 *      reader (this thread)  ->  engine's chunks in flight  ->  writer (a thread)
 *
 * Both sides handle samples as the files store them. Whichever side fails first stops the engine, which wakes the
 * other. What fits one chunk, tail included, needs no second thread: it is read, computed and written in turn.
 */
#include "transfer.h"

#include "../core/clock.h"
#include "../core/error.h"
#include "../core/memory.h"

#include <pthread.h>

static gpuconv_status engine_failed(const gc_transfer *t, gpuconv_status status, gpuconv_error *error) {
    return gc_fail(error, status, "%s", gc_engine_failure(t->engine, status));
}

static gpuconv_status interrupted(const gc_transfer *t, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", t->output);
}

static bool cancelled(const gc_transfer *t) {
    return t->cancel && *t->cancel;
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
        double begin = gc_now();
        status = gc_writer_write(t->writer, raw, frames, error);
        t->write_seconds += gc_now() - begin;
        gc_engine_release(t->engine);
        if (status)
            return status;
        t->written += frames;
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

gpuconv_status gc_transfer_run(gc_transfer *t, gpuconv_error *error) {
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
