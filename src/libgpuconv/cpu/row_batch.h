/* Rows on threads: any number of independent rows, divided so that all threads have work. */
#ifndef GC_CPU_ROW_BATCH_H
#define GC_CPU_ROW_BATCH_H

#include "libgpuconv/core/pool.h"
#include "row_convolve.h"

/* Threads with their tables and scratch memory, which grow with the first batches. For one thread at a time. */
typedef struct gc_row_threads {
    int threads;
    gc_pool *pool;
    gc_costs costs;
    gc_row_tables tables;
    gc_row_scratch *scratch; /* per thread */
} gc_row_threads;

/* Starts the threads; 0: one per core. Returns false without memory or a thread; free the object all the same. */
bool gc_row_threads_init(gc_row_threads *threads, int count);
void gc_row_threads_free(gc_row_threads *threads);

/* Convolves `count` (>= 1) rows. Rows that follow one another and have the same response share its transform.
 * @return UNSUPPORTED (both operands of a row are too long), MEMORY, CANCELLED */
gpuconv_status gc_row_batch_convolve(gc_row_threads *threads, const gc_row *rows, int64_t count, gpuconv_error *error);

#endif
