/* A pool of threads that share out the indices of one loop at a time. */
#ifndef GC_CORE_POOL_H
#define GC_CORE_POOL_H

#include <stdint.h>

typedef struct gc_pool gc_pool;

/* A pool in which `threads` (>= 1) threads work, the caller of gc_pool_run being one of them. NULL: no memory or no
 * thread to be had. */
gc_pool *gc_pool_new(int threads);

/* Calls job(context, index, worker) once for each index 0..count-1, worker 0..threads-1 telling which scratch memory is
 * free, and returns when all are done. One caller at a time. */
void gc_pool_run(gc_pool *pool, void (*job)(void *context, int64_t index, int worker), void *context, int64_t count);

int gc_pool_threads(const gc_pool *pool);
void gc_pool_free(gc_pool *pool);

/* How many processors this process may run on, at least 1. */
int gc_processors(void);

#endif
