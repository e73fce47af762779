/* Workers wait on a condition variable between loops. Inside a loop each thread claims the next index with an atomic
 * addition, which balances jobs of different length. A worker that gets a core only after the caller has found no index
 * left does not join the loop, so that the caller does not wait for it: on a machine whose cores are busy that takes
 * milliseconds. */
#include "pool.h"

#include "cancel.h"
#include "memory.h"
#include "subnormal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct worker {
    gc_pool *pool;
    pthread_t thread;
    int number;
} worker;

struct gc_pool {
    int threads;
    const volatile int *cancel; /* the flag of the thread that created the pool */
    worker *workers;            /* threads - 1: the caller is the remaining one */
    int started;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    /* protected by `lock`: */
    uint64_t generation; /* of loops */
    bool open;           /* workers may join the current loop */
    int running;         /* workers that joined the current loop */
    bool quit;
    /* the current loop: */
    void (*job)(void *, int64_t, int);
    void *context;
    int64_t count;
    int allowed; /* workers with this number or above do not take part */
    _Atomic int64_t next;
};

static void run_indices(gc_pool *pool, int number) {
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (index >= pool->count || gc_cancelled())
            return;
        pool->job(pool->context, index, number);
    }
}

static void *worker_main(void *argument) {
    worker *self = argument;
    gc_pool *pool = self->pool;
    uint64_t seen = 0;
    gc_flush_subnormals();
    gpuconv_cancel_set(pool->cancel);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && pool->generation == seen)
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->quit)
            break;
        seen = pool->generation;
        if (!pool->open || self->number >= pool->allowed)
            continue;
        pool->running++;
        pthread_mutex_unlock(&pool->lock);
        run_indices(pool, self->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

gc_pool *gc_pool_new(int threads) {
    gc_pool *pool = gc_calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->threads = threads;
    pool->cancel = gc_cancel_flag();
    pool->workers = gc_calloc(threads, sizeof *pool->workers);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    if (!pool->workers) {
        gc_pool_free(pool);
        return NULL;
    }
    for (int i = 1; i < threads; i++) {
        worker *w = &pool->workers[i - 1];
        w->pool = pool;
        w->number = i;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            gc_pool_free(pool);
            return NULL;
        }
        pool->started++;
    }
    return pool;
}

void gc_pool_run_on(gc_pool *pool, int workers, void (*job)(void *, int64_t, int), void *context, int64_t count) {
    if (count <= 0)
        return;
    pool->allowed = workers;
    pool->job = job;
    pool->context = context;
    pool->count = count;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    if (pool->started == 0 || count == 1) {
        run_indices(pool, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->generation++;
    pool->open = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    run_indices(pool, 0);
    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    while (pool->running > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void gc_pool_run(gc_pool *pool, void (*job)(void *, int64_t, int), void *context, int64_t count) {
    gc_pool_run_on(pool, pool->threads, job, context, count);
}

int gc_pool_threads(const gc_pool *pool) {
    return pool->threads;
}

void gc_pool_free(gc_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}
