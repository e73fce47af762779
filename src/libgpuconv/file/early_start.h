/* Starts the GPU in a thread of its own, because that takes as long as reading a large matrix of responses. */
#ifndef GC_FILE_EARLY_START_H
#define GC_FILE_EARLY_START_H

#include "gpuconv.h"

#include <pthread.h>

typedef struct gc_early_start {
    pthread_t thread;
    bool started;
    gpuconv_config config;
    double seconds; /* that the start took; 0: none */
} gc_early_start;

/* Begins to start the GPU if the backend is CUDA, or if it is AUTO and `samples` (of the input, all channels) are so
 * many that a GPU is worth its start. A failure is told by the plan, which starts the GPU itself then. */
void gc_early_start_begin(gc_early_start *start, const gpuconv_config *config, int64_t samples);

/* Waits until the GPU has started. Call it once for each gc_early_start_begin. */
void gc_early_start_wait(gc_early_start *start);

#endif
