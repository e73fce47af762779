/* One lock, one condition: a slot is a chunk of thousands of frames, so contention does not matter. */
#include "slot_queue.h"

void gc_ring_init(gc_ring *ring, int slots) {
    *ring = (gc_ring){.slots = slots};
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
}

void gc_ring_destroy(gc_ring *ring) {
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
}

static void advance(gc_ring *ring, int64_t *counter) {
    pthread_mutex_lock(&ring->lock);
    ++*counter;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static void raise(gc_ring *ring, bool *flag) {
    pthread_mutex_lock(&ring->lock);
    *flag = true;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

/* Waits until `behind` has something left of what `ahead` passed on. */
static int follow(gc_ring *ring, const int64_t *behind, const int64_t *ahead) {
    pthread_mutex_lock(&ring->lock);
    while (!ring->stopped && *behind == *ahead && !(ring->closed && *behind == ring->filled))
        pthread_cond_wait(&ring->changed, &ring->lock);
    int slot = ring->stopped ? GC_RING_STOPPED : *behind == *ahead ? GC_RING_END : (int)(*behind % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

int gc_ring_acquire(gc_ring *ring) {
    pthread_mutex_lock(&ring->lock);
    while (!ring->stopped && ring->filled - ring->released >= ring->slots)
        pthread_cond_wait(&ring->changed, &ring->lock);
    int slot = ring->stopped ? GC_RING_STOPPED : (int)(ring->filled % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

void gc_ring_fill(gc_ring *ring) {
    advance(ring, &ring->filled);
}

int gc_ring_take(gc_ring *ring) {
    return follow(ring, &ring->finished, &ring->filled);
}

void gc_ring_finish(gc_ring *ring) {
    advance(ring, &ring->finished);
}

int gc_ring_wait(gc_ring *ring) {
    return follow(ring, &ring->released, &ring->finished);
}

void gc_ring_release(gc_ring *ring) {
    advance(ring, &ring->released);
}

void gc_ring_close(gc_ring *ring) {
    raise(ring, &ring->closed);
}

void gc_ring_stop(gc_ring *ring) {
    raise(ring, &ring->stopped);
}

void gc_ring_reset(gc_ring *ring) {
    pthread_mutex_lock(&ring->lock);
    ring->filled = ring->finished = ring->released = 0;
    ring->closed = ring->stopped = false;
    pthread_mutex_unlock(&ring->lock);
}
