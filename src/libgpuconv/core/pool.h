/* Thread pool for parallel loops: the threads divide the indices of one loop at a time. */
#ifndef GC_CORE_POOL_H
#define GC_CORE_POOL_H

#include <stdint.h>

typedef struct gc_pool gc_pool;

/* Creates a pool of `threads` (>= 1) threads, of which the caller of gc_pool_run is one: threads - 1 are started.
 * @return NULL if memory or a thread cannot be had */
gc_pool *gc_pool_new(int threads);

/* Calls job(context, index, worker) once for each index 0..count-1 and returns when all calls have returned. `worker`,
 * 0..threads-1, is unique among the calls that run at the same time, so that it can select scratch memory. Only one
 * thread may call this function at a time.
 *
 * Once the flag (cancel.h) of the calling thread or of the thread that created the pool is raised, the remaining
 * indices are skipped: check gc_cancelled() before using the results. */
void gc_pool_run(gc_pool *pool, void (*job)(void *context, int64_t index, int worker), void *context, int64_t count);

/* As gc_pool_run, but on at most `workers` (>= 1) threads, numbered below `workers`: for jobs with large scratch
 * memory. */
void gc_pool_run_on(gc_pool *pool, int workers, void (*job)(void *context, int64_t index, int worker), void *context,
                    int64_t count);

int gc_pool_threads(const gc_pool *pool);
void gc_pool_free(gc_pool *pool);

/* Returns the number of processors that this process may run on, at least 1. */
int gc_processor_count(void);

#endif
