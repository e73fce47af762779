/* One lock, one condition: a slot is a chunk of thousands of frames, so contention does not matter. */
#include "slot_queue.h"

void gc_slot_queue_init(gc_slot_queue *ring, int slots) {
    *ring = (gc_slot_queue){.slots = slots};
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
}

void gc_slot_queue_destroy(gc_slot_queue *ring) {
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
}

static void advance(gc_slot_queue *ring, int64_t *counter) {
    pthread_mutex_lock(&ring->lock);
    ++*counter;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static void raise(gc_slot_queue *ring, bool *flag) {
    pthread_mutex_lock(&ring->lock);
    *flag = true;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

/* Waits until `behind` has something left of what `ahead` passed on. */
static int follow(gc_slot_queue *ring, const int64_t *behind, const int64_t *ahead) {
    pthread_mutex_lock(&ring->lock);
    while (!ring->stopped && *behind == *ahead && !(ring->closed && *behind == ring->filled))
        pthread_cond_wait(&ring->changed, &ring->lock);
    int slot = ring->stopped       ? GC_SLOT_QUEUE_STOPPED
               : *behind == *ahead ? GC_SLOT_QUEUE_END
                                   : (int)(*behind % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

int gc_slot_queue_acquire(gc_slot_queue *ring) {
    pthread_mutex_lock(&ring->lock);
    while (!ring->stopped && ring->filled - ring->released >= ring->slots)
        pthread_cond_wait(&ring->changed, &ring->lock);
    int slot = ring->stopped ? GC_SLOT_QUEUE_STOPPED : (int)(ring->filled % ring->slots);
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

void gc_slot_queue_fill(gc_slot_queue *ring) {
    advance(ring, &ring->filled);
}

int gc_slot_queue_take(gc_slot_queue *ring) {
    return follow(ring, &ring->finished, &ring->filled);
}

void gc_slot_queue_finish(gc_slot_queue *ring) {
    advance(ring, &ring->finished);
}

int gc_slot_queue_wait(gc_slot_queue *ring) {
    return follow(ring, &ring->released, &ring->finished);
}

void gc_slot_queue_release(gc_slot_queue *ring) {
    advance(ring, &ring->released);
}

void gc_slot_queue_close(gc_slot_queue *ring) {
    raise(ring, &ring->closed);
}

void gc_slot_queue_stop(gc_slot_queue *ring) {
    raise(ring, &ring->stopped);
}

void gc_slot_queue_reset(gc_slot_queue *ring) {
    pthread_mutex_lock(&ring->lock);
    ring->filled = ring->finished = ring->released = 0;
    ring->closed = ring->stopped = false;
    pthread_mutex_unlock(&ring->lock);
}
