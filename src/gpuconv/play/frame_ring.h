/* Frames on their way between two threads that must not wait for each other: one writes, one reads, both by counters.
 */
#ifndef GPUCONV_PLAY_FRAME_RING_H
#define GPUCONV_PLAY_FRAME_RING_H

#include "libgpuconv/core/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct gc_frames {
    float *data; /* interleaved */
    int channels;
    int64_t room; /* frames, a power of two */
    _Atomic int64_t written, read;
} gc_frames;

static inline bool gc_frames_init(gc_frames *f, int channels, int64_t room) {
    f->channels = channels;
    f->room = gc_power_of_two(room);
    f->data = gc_calloc(f->room * channels, sizeof *f->data);
    return f->data != NULL;
}

static inline void gc_frames_free(gc_frames *f) {
    free(f->data);
    f->data = NULL;
}

/* How many can be read, and how many written. */
static inline int64_t gc_frames_ready(gc_frames *f) {
    return atomic_load_explicit(&f->written, memory_order_acquire) -
           atomic_load_explicit(&f->read, memory_order_relaxed);
}

static inline int64_t gc_frames_free_room(gc_frames *f) {
    return f->room - (atomic_load_explicit(&f->written, memory_order_relaxed) -
                      atomic_load_explicit(&f->read, memory_order_acquire));
}

/* Copies `n` frames, which must be there, or have room. */
static inline void gc_frames_get(gc_frames *f, float *to, int64_t n) {
    int64_t at = atomic_load_explicit(&f->read, memory_order_relaxed), from = at & (f->room - 1);
    int64_t first = gc_min(n, f->room - from);
    size_t frame = sizeof(float) * (size_t)f->channels;
    memcpy(to, f->data + from * f->channels, (size_t)first * frame);
    memcpy(to + first * f->channels, f->data, (size_t)(n - first) * frame);
    atomic_store_explicit(&f->read, at + n, memory_order_release);
}

static inline void gc_frames_put(gc_frames *f, const float *from, int64_t n) {
    int64_t at = atomic_load_explicit(&f->written, memory_order_relaxed), to = at & (f->room - 1);
    int64_t first = gc_min(n, f->room - to);
    size_t frame = sizeof(float) * (size_t)f->channels;
    memcpy(f->data + to * f->channels, from, (size_t)first * frame);
    memcpy(f->data, from + first * f->channels, (size_t)(n - first) * frame);
    atomic_store_explicit(&f->written, at + n, memory_order_release);
}

/* The reader's: forgets all that is there. */
static inline void gc_frames_skip(gc_frames *f) {
    atomic_store_explicit(&f->read, atomic_load_explicit(&f->written, memory_order_acquire), memory_order_release);
}

#endif
