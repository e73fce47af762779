/*
 * Division of a batch between the cores and the GPUs.
 *
 * A row is computed by the GPUs if a hash of its number is below the share of the batch, so that its samples follow
 * from the row and the share, whatever the threads do, and results.jsonl keeps the share for --resume. The rows of a
 * smaller share are among those of a larger one. The largest possible share follows from costs, and the rows outside of
 * it begin on the cores at once. Their time and the costs of a GPU give the share. The costs of a core alone would not
 * do, because cores that work at the same time share caches and memory: a row of 30 s with a response of 6 s took 2.6
 * times as long as its costs on 32 cores.
 */
#ifndef GPUCONV_BATCH_RUN_SHARE_H
#define GPUCONV_BATCH_RUN_SHARE_H

#include "libgpuconv/conv/backend.h"
#include "worker.h"

/* The share of all rows. */
enum { GC_SHARE_ALL = 1 << 16 };

/* Means of the rows of a batch, in seconds. */
typedef struct gc_batch_rates {
    double host;        /* of a core for the files and rooms of a row, wherever it is convolved */
    double cpu, gpu;    /* of a core and of a GPU for its convolution; of a GPU with the bus */
    double start, next; /* until the first GPU convolves, and until each further one does */
} gc_batch_rates;

typedef struct gc_batch_share {
    int gpus;    /* of GC_SHARE_ALL rows, those on GPUs */
    int devices; /* GPUs to use; 0: none */
    int feeders; /* workers for the rows of the GPUs: as many as keep them busy */
    double seconds;
} gc_batch_share;

/* Returns whether a row is on a GPU. */
static inline bool gc_share_has(int gpus, int64_t row) {
    return (int)((uint32_t)row * 2654435769U >> 16) <
           gpus; /* multiples of the golden ratio: any stretch has the share */
}

/* Returns the division with which a batch of `rows` rows ends first on `cores` cores and up to `devices` GPUs. GPUs
 * that save less than a tenth of the time are not used. */
gc_batch_share gc_batch_divide(const gc_batch_rates *rates, int64_t rows, int cores, int devices);

/* Sets the seconds of a core so that a row takes the measured time. If this is shorter than the estimate, files and
 * convolution become shorter in proportion; if it is longer, only the convolution becomes longer. */
void gc_batch_measured(gc_batch_rates *rates, double seconds);

/* Fills *rates from some rows of a batch; those that cannot be opened do not count. gpu: a started GPU; NULL: one that
 * takes no time. Returns false if no row could be opened. */
bool gc_batch_estimate(const gc_worker *worker, const gc_device *gpu, gc_batch_rates *rates);

#endif
