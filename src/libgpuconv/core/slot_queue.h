/*
 * A ring of slots that travel from a producer over a worker to a consumer, each on its own thread, and block where
 * there is nothing to do yet:
 *
 *      producer  acquire -> fill      worker  take -> finish      consumer  wait -> release
 *
 * Only the counters are here; what a slot holds is the owner's. Every waiting call gives a slot number,
 * GC_SLOT_QUEUE_STOPPED once the ring was stopped, or (take, wait) GC_SLOT_QUEUE_END when it was closed and is empty.
 */
#ifndef GC_CORE_SLOT_QUEUE_H
#define GC_CORE_SLOT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { GC_SLOT_QUEUE_END = -1, GC_SLOT_QUEUE_STOPPED = -2 };

typedef struct gc_slot_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int slots;
    bool closed, stopped;
    int64_t filled, finished, released;
} gc_slot_queue;

void gc_slot_queue_init(gc_slot_queue *ring, int slots);
void gc_slot_queue_destroy(gc_slot_queue *ring);

int gc_slot_queue_acquire(gc_slot_queue *ring);
void gc_slot_queue_fill(gc_slot_queue *ring);
int gc_slot_queue_take(gc_slot_queue *ring);
void gc_slot_queue_finish(gc_slot_queue *ring);
int gc_slot_queue_wait(gc_slot_queue *ring);
void gc_slot_queue_release(gc_slot_queue *ring);

/* No more will be filled: those behind drain what is there. */
void gc_slot_queue_close(gc_slot_queue *ring);

/* Everybody out, now. */
void gc_slot_queue_stop(gc_slot_queue *ring);

/* Empty and open again; nobody may be waiting. */
void gc_slot_queue_reset(gc_slot_queue *ring);

#endif
