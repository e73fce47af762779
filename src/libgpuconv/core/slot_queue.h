/*
 * Blocking three-stage queue: a ring of slots that pass from a producer to a worker to a consumer, each of which is one
 * thread:
 *
 *      producer  acquire -> fill      worker  take -> finish      consumer  wait -> release
 *
 * The queue holds only the counters; the owner keeps an array with the contents of the slots. gc_slot_queue_acquire,
 * _take and _wait block until a slot is available and return its number, or GC_SLOT_QUEUE_STOPPED after
 * gc_slot_queue_stop, or (take, wait) GC_SLOT_QUEUE_END when the queue is closed and all its slots have passed.
 */
#ifndef GC_CORE_SLOT_QUEUE_H
#define GC_CORE_SLOT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { GC_SLOT_QUEUE_END = -1, GC_SLOT_QUEUE_STOPPED = -2 };

typedef struct gc_slot_queue {
    pthread_mutex_t lock;
    pthread_cond_t producer, worker, consumer; /* each stage waits on its own */
    int slots;
    bool closed, stopped;
    int64_t filled, finished, released;
} gc_slot_queue;

void gc_slot_queue_init(gc_slot_queue *queue, int slots);
void gc_slot_queue_destroy(gc_slot_queue *queue);

int gc_slot_queue_acquire(gc_slot_queue *queue);
void gc_slot_queue_fill(gc_slot_queue *queue);
int gc_slot_queue_take(gc_slot_queue *queue);
void gc_slot_queue_finish(gc_slot_queue *queue);
int gc_slot_queue_wait(gc_slot_queue *queue);
void gc_slot_queue_release(gc_slot_queue *queue);

/* Declares the end of the input: the worker and the consumer still receive the slots that were filled. */
void gc_slot_queue_close(gc_slot_queue *queue);

/* Wakes all waiting threads: their calls, and all later ones, return GC_SLOT_QUEUE_STOPPED. */
void gc_slot_queue_stop(gc_slot_queue *queue);

/* Makes the queue empty and open again. No thread may be waiting in it. */
void gc_slot_queue_reset(gc_slot_queue *queue);

#endif
