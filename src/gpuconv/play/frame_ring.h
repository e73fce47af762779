/* Lock-free ring of interleaved frames with one producer thread and one consumer thread. Neither thread ever waits: the
 * producer publishes frames by advancing `written`, the consumer frees them by advancing `read`. */
#ifndef GPUCONV_PLAY_FRAME_RING_H
#define GPUCONV_PLAY_FRAME_RING_H

#include "libgpuconv/core/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct gc_frame_ring {
    float *data; /* interleaved */
    int channels;
    int64_t capacity;              /* frames, a power of two */
    _Atomic int64_t written, read; /* frames since the beginning; never reduced modulo the capacity */
} gc_frame_ring;

/* Allocates at least `capacity` frames. @return false: out of memory */
static inline bool gc_frame_ring_init(gc_frame_ring *ring, int channels, int64_t capacity) {
    ring->channels = channels;
    ring->capacity = gc_power_of_two(capacity);
    ring->data = gc_calloc(ring->capacity * channels, sizeof *ring->data);
    return ring->data != NULL;
}

static inline void gc_frame_ring_free(gc_frame_ring *ring) {
    free(ring->data);
    ring->data = NULL;
}

/* Returns the number of frames that the consumer can read. */
static inline int64_t gc_frame_ring_available(gc_frame_ring *ring) {
    return atomic_load_explicit(&ring->written, memory_order_acquire) -
           atomic_load_explicit(&ring->read, memory_order_relaxed);
}

/* Returns the number of frames that the producer can write. */
static inline int64_t gc_frame_ring_space(gc_frame_ring *ring) {
    return ring->capacity - (atomic_load_explicit(&ring->written, memory_order_relaxed) -
                             atomic_load_explicit(&ring->read, memory_order_acquire));
}

/* Copies `n` frames out of the ring; at least `n` must be available. Consumer only. */
static inline void gc_frame_ring_read(gc_frame_ring *ring, float *to, int64_t n) {
    int64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed), from = at & (ring->capacity - 1);
    int64_t first = gc_min(n, ring->capacity - from);
    size_t frame = sizeof(float) * (size_t)ring->channels;
    memcpy(to, ring->data + from * ring->channels, (size_t)first * frame);
    memcpy(to + first * ring->channels, ring->data, (size_t)(n - first) * frame);
    atomic_store_explicit(&ring->read, at + n, memory_order_release);
}

/* Copies `n` frames into the ring; there must be space for at least `n`. Producer only. */
static inline void gc_frame_ring_write(gc_frame_ring *ring, const float *from, int64_t n) {
    int64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed), to = at & (ring->capacity - 1);
    int64_t first = gc_min(n, ring->capacity - to);
    size_t frame = sizeof(float) * (size_t)ring->channels;
    memcpy(ring->data + to * ring->channels, from, (size_t)first * frame);
    memcpy(ring->data, from + first * ring->channels, (size_t)(n - first) * frame);
    atomic_store_explicit(&ring->written, at + n, memory_order_release);
}

/* Discards all available frames. Consumer only. */
static inline void gc_frame_ring_discard(gc_frame_ring *ring) {
    atomic_store_explicit(&ring->read, atomic_load_explicit(&ring->written, memory_order_acquire),
                          memory_order_release);
}

#endif
