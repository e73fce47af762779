/*
 * Moving sources beside a sound device:
 *
 *      callback -> ring of the input -> thread: feed, fetch -> ring of the result -> callback
 *
 * The callback copies and never waits. Both rings are addressed by frames since the beginning, so that a result that
 * comes too late is silence, and later ones are at their place again. Input that the ring has no room for, because the
 * thread was late for several blocks, is made up by silence. Without a thread the callback renders each interval as
 * soon as its input is complete.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/motion_kernels.h"
#include "motion.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gc_motion_live {
    pthread_t thread;
    bool running;
    int block; /* longest one, in frames */
    int64_t latency;
    int64_t tiles; /* of both rings: the frames of a hop, channel after channel */
    float *in, *out;
    const float **row; /* of the thread: per channel */
    _Atomic bool quit, failed;
    _Atomic int64_t written, read; /* frames of the input: of the callback, of the thread */
    _Atomic int64_t made;          /* frames of the result */
    _Atomic int64_t late;
    int64_t missing, at; /* of the callback: input frames that had no room; the next frame */
};

/* Returns where frame `at` of the first of `channels` is in a ring; the others follow m->hop apart. *frames becomes the
 * number of frames that are there in one piece, if it is larger. */
static float *find_frames(const gpuconv_motion *m, float *ring, int channels, int64_t at, int64_t *frames) {
    const int64_t place = at % m->hop;
    *frames = gc_min(*frames, m->hop - place);
    return ring + at / m->hop % m->live->tiles * channels * m->hop + place;
}

/* Feeds what the callback has written, up to the end of the hop; to a GPU the whole hop, which is in its place there.
 * Returns the number of frames; -1 after a failure. */
static int64_t feed(gpuconv_motion *m, gc_motion_live *l) {
    const int64_t at = atomic_load_explicit(&l->read, memory_order_relaxed);
    int64_t frames = atomic_load_explicit(&l->written, memory_order_acquire) - at;
    float *tile = find_frames(m, l->in, m->channels, at, &frames);
    if (frames == 0 || (m->backend && frames < m->hop))
        return 0;
    if (m->backend)
        m->input = tile;
    for (int c = 0; c < m->channels; c++)
        l->row[c] = tile + c * m->hop;
    return gpuconv_motion_feed(m, l->row, frames, NULL) ? -1 : frames;
}

/* Moves what is ready to the ring of the result. */
static void fetch(gpuconv_motion *m, gc_motion_live *l) {
    float *out[GC_MAX_CHANNELS];
    for (int64_t got = 1; got > 0;) {
        const int64_t at = atomic_load_explicit(&l->made, memory_order_relaxed);
        int64_t room = m->hop;
        float *tile = find_frames(m, l->out, m->receivers, at, &room);
        for (int r = 0; r < m->receivers; r++)
            out[r] = tile + r * m->hop;
        (void)gpuconv_motion_fetch(m, out, room, &got);
        atomic_store_explicit(&l->made, at + got, memory_order_release);
    }
}

/* Renders what the callback has written, up to the end of an interval. Returns the number of frames; -1 after a
 * failure. */
static int64_t render(gpuconv_motion *m, gc_motion_live *l) {
    const int64_t frames = feed(m, l);
    if (frames < 0)
        atomic_store(&l->failed, true);
    if (frames > 0) {
        fetch(m, l);
        atomic_fetch_add_explicit(&l->read, frames, memory_order_release);
    }
    return frames;
}

/* Returns whether the next block completes the hop that is filled: its places are found while the block comes in. */
static bool completed_by_next_block(const gpuconv_motion *m, const gc_motion_live *l) {
    const int64_t written = atomic_load_explicit(&l->written, memory_order_relaxed);
    return written / m->hop == atomic_load_explicit(&l->read, memory_order_relaxed) / m->hop &&
           m->hop - written % m->hop <= l->block;
}

static void *run(void *motion) {
    gpuconv_motion *m = motion;
    gc_motion_live *l = m->live;
    const double most = 0.0005, part = 8; /* seconds of a sleep, and of which part of a hop */
    const struct timespec interval = {0, (long)(1e9 * fmin(most, (double)m->hop / m->rate / part))};
    gc_flush_subnormals();
    while (!atomic_load(&l->quit) && !atomic_load(&l->failed))
        if (render(m, l) == 0) {
            if (m->room || completed_by_next_block(m, l)) /* a simulation needs the whole hop */
                (void)gc_motion_find_places(m, NULL);     /* a failure is found again by render() */
            nanosleep(&interval, NULL);
        }
    return NULL;
}

/* Frees the memory of a sound device. */
static void free_live(gpuconv_motion *m) {
    gc_motion_live *l = m->live;
    if (!l)
        return;
    atomic_store(&l->quit, true);
    if (l->running)
        pthread_join(l->thread, NULL);
    if (m->backend)
        m->backend->free_pinned(m->config.device, l->in);
    else
        free(l->in);
    free(l->out);
    free((void *)l->row);
    free(l);
    m->live = NULL;
}

/* Allocates the rings, and makes all spectra. Returns MEMORY, CANCELLED. */
static gpuconv_status prepare(gpuconv_motion *m, gc_motion_live *l, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    l->latency = m->skip + m->hop + (l->block ? l->block + gc_max(m->hop, l->block) : 0);
    l->tiles = gc_divide_up(4 * (l->latency + gc_max(m->hop, l->block)), m->hop);
    const int64_t frames = l->tiles * m->hop;
    l->in = m->backend ? m->backend->alloc_pinned(m->config.device, m->channels * frames)
                       : gc_alloc(m->channels, frames * (int64_t)sizeof *l->in);
    l->out = gc_alloc(m->receivers, frames * (int64_t)sizeof *l->out);
    l->row = gc_calloc(m->channels, (int64_t)sizeof *l->row);
    if (!l->in || !l->out || !l->row)
        return gc_fail_memory(error, "the moving sources");
    memset(l->in, 0, (size_t)(m->channels * frames) * sizeof *l->in); /* the callback meets no new page */
    memset(l->out, 0, (size_t)(m->receivers * frames) * sizeof *l->out);
    for (int i = 0; i < m->responses && !m->backend && !m->room && !status; i++)
        status = gc_motion_make_spectra(m, i, error);
    return status;
}

gpuconv_status gpuconv_motion_start(gpuconv_motion *m, int block, gpuconv_error *error) {
    if (!m)
        return gc_fail_null(error, __func__);
    if (block < 0 || block > 1 << 20)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a block has 1 to 1048576 frames, or 0, not %d", block);
    if (block == 0 && m->room)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a room is simulated by a thread: a block has 1 frame or more");
    if (m->live || m->fed || m->ended)
        return gc_fail(error, GPUCONV_ERROR_STATE, "the moving sources have been started");
    m->live = gc_calloc(1, sizeof *m->live);
    if (!m->live)
        return gc_fail_memory(error, "the moving sources");
    m->hops = 1; /* of the memory for more */
    m->width = m->backend ? m->hop : m->width;
    m->live->block = block;
    gpuconv_status status = prepare(m, m->live, error);
    if (!status && block && pthread_create(&m->live->thread, NULL, run, m) != 0)
        status = gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the thread of the moving sources");
    m->live->running = !status && block;
    if (status)
        free_live(m);
    return status;
}

/* Writes a part of the input, from frame `first` on, to its ring; silence for NULL. Returns how many frames there was
 * room for. */
static int64_t write_ring(const gpuconv_motion *m, gc_motion_live *l, const float *const *in, int64_t first,
                          int64_t frames) {
    const int64_t at = atomic_load_explicit(&l->written, memory_order_relaxed);
    const int64_t room = l->tiles * m->hop - (at - atomic_load_explicit(&l->read, memory_order_acquire));
    const int64_t all = gc_min(frames, room);
    int64_t part;
    for (int64_t done = 0; done < all; done += part) {
        part = all - done;
        float *tile = find_frames(m, l->in, m->channels, at + done, &part);
        if (in && m->backend) /* up to megabytes, which the GPU reads next */
            m->simd->motion->copy_rows(in, first + done, part, m->channels, tile, m->hop);
        else
            for (int c = 0; c < m->channels; c++)
                if (in)
                    memcpy(tile + c * m->hop, in[c] + first + done, (size_t)part * sizeof *tile);
                else
                    memset(tile + c * m->hop, 0, (size_t)part * sizeof *tile);
    }
    atomic_store_explicit(&l->written, at + all, memory_order_release);
    return all;
}

/* Takes frames from the frame `first` of a block on, and gives as many. */
static void process(gpuconv_motion *m, const float *const *in, float *const *out, int64_t first, int64_t frames) {
    gc_motion_live *l = m->live;
    l->missing -= write_ring(m, l, NULL, 0, l->missing);
    l->missing += frames - (l->missing ? 0 : write_ring(m, l, in, first, frames));
    while (!l->running && !atomic_load(&l->failed) && render(m, l) > 0) {
    }
    const int64_t from = l->at - l->latency, made = atomic_load_explicit(&l->made, memory_order_acquire);
    const int64_t before = gc_min(frames, gc_max(0, -from)), there = gc_max(0, gc_min(frames, made - from) - before);
    for (int r = 0; r < m->receivers; r++)
        memset(out[r] + first, 0, (size_t)frames * sizeof **out);
    int64_t part;
    for (int64_t done = 0; done < there; done += part) {
        part = there - done;
        const float *tile = find_frames(m, l->out, m->receivers, from + before + done, &part);
        for (int r = 0; r < m->receivers; r++)
            memcpy(out[r] + first + before + done, tile + r * m->hop, (size_t)part * sizeof *tile);
    }
    atomic_fetch_add_explicit(&l->late, frames - before - there, memory_order_relaxed);
    l->at += frames;
}

void gpuconv_motion_process(gpuconv_motion *m, const float *const *in, float *const *out, int64_t frames) {
    if (!m || !m->live || !in || !out)
        return;
    for (int64_t at = 0, part; at < frames; at += part) {
        part = m->live->running ? frames : gc_min(frames - at, m->hop);
        process(m, in, out, at, part);
    }
}

void gpuconv_motion_seek(gpuconv_motion *m, int64_t frame) {
    if (m)
        atomic_store(&m->ahead, frame - (m->live ? m->live->at : m->fed));
}

void gpuconv_motion_turn(gpuconv_motion *m, const double angles[3]) {
    if (!m || !angles)
        return;
    for (int k = 0; k < 3; k++)
        atomic_store_explicit(&m->angle[k], angles[k], memory_order_relaxed);
    atomic_store_explicit(&m->head_rotated, true, memory_order_release);
}

void gpuconv_motion_place(gpuconv_motion *m, int channel, const double direction[3]) {
    if (!m || !direction || channel < 0 || channel >= m->channels)
        return;
    for (int k = 2; k >= 0; k--) /* the first one last: without it the path is followed */
        atomic_store_explicit(&m->placed[3 * channel + k],
                              m->room ? gc_motion_room_within(m->room, k, direction[k]) : direction[k],
                              memory_order_release);
}

int64_t gpuconv_motion_latency(const gpuconv_motion *m) {
    return m && m->live ? m->live->latency : 0;
}

int64_t gpuconv_motion_late(const gpuconv_motion *m) {
    return m && m->live ? atomic_load(&m->live->late) : 0;
}

void gc_motion_settle(const gpuconv_motion *m) {
    const struct timespec interval = {0, 20000};
    const int64_t least = m->backend ? m->hop : 1; /* frames that are fed */
    while (!atomic_load(&m->live->failed) && atomic_load(&m->live->written) - atomic_load(&m->live->read) >= least)
        nanosleep(&interval, NULL);
}

void gpuconv_motion_free(gpuconv_motion *m) {
    if (!m)
        return;
    free_live(m);
    gc_motion_free(m);
}
