/*
 * A ring of slots that travel from a producer over a worker to a consumer, each on its own thread, and block where
 * there is nothing to do yet:
 *
 *      producer  acquire -> fill      worker  take -> finish      consumer  wait -> release
 *
 * Only the counters are here; what a slot holds is the owner's. Every waiting call gives a slot number, GC_RING_STOPPED
 * once the ring was stopped, or (take, wait) GC_RING_END when it was closed and is empty.
 */
#ifndef GC_CORE_SLOT_QUEUE_H
#define GC_CORE_SLOT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { GC_RING_END = -1, GC_RING_STOPPED = -2 };

typedef struct gc_ring {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int slots;
    bool closed, stopped;
    int64_t filled, finished, released;
} gc_ring;

void gc_ring_init(gc_ring *ring, int slots);
void gc_ring_destroy(gc_ring *ring);

int gc_ring_acquire(gc_ring *ring);
void gc_ring_fill(gc_ring *ring);
int gc_ring_take(gc_ring *ring);
void gc_ring_finish(gc_ring *ring);
int gc_ring_wait(gc_ring *ring);
void gc_ring_release(gc_ring *ring);

/* No more will be filled: those behind drain what is there. */
void gc_ring_close(gc_ring *ring);

/* Everybody out, now. */
void gc_ring_stop(gc_ring *ring);

/* Empty and open again; nobody may be waiting. */
void gc_ring_reset(gc_ring *ring);

#endif
