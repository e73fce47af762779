/* The player's threads: the reader prefetches the file, the recorder writes what was played. */
#include "libgpuconv/core/error.h"
#include "player_state.h"

#include <math.h>
#include <time.h>

/* Frames per read, and the most frames that the resampler makes of them. */
enum { READ_STEP = 4096, CONVERTED_MAX = 2 * READ_STEP + 4096 };

void gc_player_sleep(void) {
    struct timespec t = {0, 5000000};
    nanosleep(&t, NULL);
}

/* Stores a thread's error and ends playback. */
static void fail_thread(gc_player *p, gpuconv_status status, const gpuconv_error *error) {
    if (!atomic_exchange(&p->thread_failed, true)) {
        p->err = status;
        p->error = *error;
    }
    atomic_store(&p->finished, true);
}

/* Continues at another frame, after the callback has discarded the prefetched frames. */
static gpuconv_status seek_file(gc_player *p, int64_t frame, gpuconv_error *error) {
    atomic_store(&p->flush, true);
    while (atomic_load(&p->flush) && !atomic_load(&p->quit))
        gc_player_sleep();
    atomic_store(&p->ended, false);
    atomic_store(&p->position, frame);
    if (p->resampler)
        gc_resampler_clear(p->resampler);
    return gc_reader_seek(p->reader, (int64_t)((double)frame * (p->file_rate / p->rate)), error);
}

/* Resamples frames of the file to the device's rate and writes them into the ring. `block` NULL: the file has ended;
 * writes the resampler's last frames. */
static gpuconv_status prefetch(gc_player *p, const float *block, int64_t frames, float *converted,
                               gpuconv_error *error) {
    if (!p->resampler) {
        if (block)
            gc_frame_ring_write(&p->prefetched, block, frames);
        return GPUCONV_OK;
    }
    int64_t made = gc_resampler_process(p->resampler, block, frames, converted, CONVERTED_MAX);
    if (made < 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling %s failed", p->config.input);
    gc_frame_ring_write(&p->prefetched, converted, made);
    return GPUCONV_OK;
}

/* Reads up to `step` frames into the ring. At the end of the file starts again if the player loops, else sets `ended`.
 */
static gpuconv_status read_step(gc_player *p, float *block, int64_t step, float *converted, gpuconv_error *error) {
    int64_t got;
    gpuconv_status status = gc_reader_read_floats(p->reader, block, step, &got, error);
    if (!status && got > 0)
        status = prefetch(p, block, got, converted, error);
    if (status || got == step)
        return status;
    if (p->config.loop)
        return gc_reader_seek(p->reader, 0, error);
    status = prefetch(p, NULL, 0, converted, error);
    atomic_store_explicit(&p->ended, true, memory_order_release);
    return status;
}

void *gc_player_read_thread(void *player) {
    gc_player *p = player;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    /* Chosen so that the resampler makes at most about READ_STEP frames of one step. */
    int64_t step = p->resampler ? gc_max(16, (int64_t)(READ_STEP * fmin(1, p->file_rate / p->rate))) : READ_STEP;
    float *block = gc_calloc((int64_t)READ_STEP * p->inputs, sizeof *block);
    float *converted = gc_calloc((int64_t)CONVERTED_MAX * p->inputs, sizeof *converted);
    if (!block || !converted)
        status = gc_fail_memory(&error, "reading ahead");
    while (!status && !atomic_load(&p->quit)) {
        int64_t frame = atomic_exchange(&p->seek, -1);
        if (frame >= 0) {
            status = seek_file(p, frame, &error);
        } else if (atomic_load(&p->ended) || gc_frame_ring_space(&p->prefetched) < CONVERTED_MAX) {
            atomic_store(&p->starting, false);
            gc_player_sleep();
        } else {
            status = read_step(p, block, step, converted, &error);
        }
    }
    if (status && !atomic_load(&p->quit)) /* a read that was cancelled by `quit` is not an error */
        fail_thread(p, status, &error);
    free(block);
    free(converted);
    return NULL;
}

void *gc_player_record_thread(void *player) {
    enum { STEP = 4096 };
    gc_player *p = player;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    float *block = gc_calloc((int64_t)STEP * p->outputs, sizeof *block);
    if (!block)
        status = gc_fail_memory(&error, "recording");
    while (!status) {
        const bool recording = atomic_load(&p->recording); /* before the look at the ring */
        int64_t n = gc_min(STEP, gc_frame_ring_available(&p->recorded));
        if (n == 0 && !recording)
            break;
        if (n == 0) {
            gc_player_sleep();
            continue;
        }
        gc_frame_ring_read(&p->recorded, block, n);
        status = gc_writer_write(p->writer, block, n, &error);
    }
    if (status) {
        fail_thread(p, status, &error);
        gc_writer_forgive(p->writer); /* a full disk: what it took is kept */
    }
    free(block);
    return NULL;
}
