/* One mutex: a slot is a chunk of thousands of frames, so contention does not matter. Each stage has a condition
 * variable, so that a slot that moves on wakes only the thread of the next stage. */
#include "slot_queue.h"

void gc_slot_queue_init(gc_slot_queue *queue, int slots) {
    *queue = (gc_slot_queue){.slots = slots};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->producer, NULL);
    pthread_cond_init(&queue->worker, NULL);
    pthread_cond_init(&queue->consumer, NULL);
}

void gc_slot_queue_destroy(gc_slot_queue *queue) {
    pthread_cond_destroy(&queue->consumer);
    pthread_cond_destroy(&queue->worker);
    pthread_cond_destroy(&queue->producer);
    pthread_mutex_destroy(&queue->lock);
}

/* Counts a slot and wakes the stage that waits for it. */
static void increment(gc_slot_queue *queue, int64_t *counter, pthread_cond_t *next) {
    pthread_mutex_lock(&queue->lock);
    ++*counter;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(next);
}

static void set_flag(gc_slot_queue *queue, bool *flag) {
    pthread_mutex_lock(&queue->lock);
    *flag = true;
    pthread_cond_broadcast(&queue->producer);
    pthread_cond_broadcast(&queue->worker);
    pthread_cond_broadcast(&queue->consumer);
    pthread_mutex_unlock(&queue->lock);
}

/* Blocks until the earlier stage's counter `ahead` exceeds `behind`, the counter of the calling stage. Returns the next
 * slot of the calling stage, STOPPED or END. */
static int wait_for_slot(gc_slot_queue *queue, pthread_cond_t *stage, const int64_t *behind, const int64_t *ahead) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->stopped && *behind == *ahead && !(queue->closed && *behind == queue->filled))
        pthread_cond_wait(stage, &queue->lock);
    int slot = queue->stopped      ? GC_SLOT_QUEUE_STOPPED
               : *behind == *ahead ? GC_SLOT_QUEUE_END
                                   : (int)(*behind % queue->slots);
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

int gc_slot_queue_acquire(gc_slot_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->stopped && queue->filled - queue->released >= queue->slots)
        pthread_cond_wait(&queue->producer, &queue->lock);
    int slot = queue->stopped ? GC_SLOT_QUEUE_STOPPED : (int)(queue->filled % queue->slots);
    pthread_mutex_unlock(&queue->lock);
    return slot;
}

void gc_slot_queue_fill(gc_slot_queue *queue) {
    increment(queue, &queue->filled, &queue->worker);
}

int gc_slot_queue_take(gc_slot_queue *queue) {
    return wait_for_slot(queue, &queue->worker, &queue->finished, &queue->filled);
}

void gc_slot_queue_finish(gc_slot_queue *queue) {
    increment(queue, &queue->finished, &queue->consumer);
}

int gc_slot_queue_wait(gc_slot_queue *queue) {
    return wait_for_slot(queue, &queue->consumer, &queue->released, &queue->finished);
}

void gc_slot_queue_release(gc_slot_queue *queue) {
    increment(queue, &queue->released, &queue->producer);
}

void gc_slot_queue_close(gc_slot_queue *queue) {
    set_flag(queue, &queue->closed);
}

void gc_slot_queue_stop(gc_slot_queue *queue) {
    set_flag(queue, &queue->stopped);
}

void gc_slot_queue_reset(gc_slot_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->filled = queue->finished = queue->released = 0;
    queue->closed = queue->stopped = false;
    pthread_mutex_unlock(&queue->lock);
}
