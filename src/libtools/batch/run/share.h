/*
 * Batches that cores and GPUs share.
 *
 * The cores begin. The time of their first rows and the costs of a GPU say whether GPUs shorten the batch, and how
 * many. While the first one starts, only some cores go on, because busy cores make a start longer: the fewer, the
 * faster the GPUs are (docs/experiments/corpus.md). Then each worker takes the next row of the list, the cores from
 * its beginning and the GPUs from its end, so that both end together whatever their speed is. Near the end the cores
 * take no row that the GPUs would begin and end sooner. Where a row was computed is in results.jsonl, and --resume
 * computes it there again.
 *
 * The costs of a core alone do not tell its time, because cores that work at the same time share caches and memory: a
 * row of 30 s with a response of 6 s took 2.6 times as long as its costs on 32 cores.
 */
#ifndef GPUCONV_BATCH_RUN_SHARE_H
#define GPUCONV_BATCH_RUN_SHARE_H

#include "libgpuconv/conv/backend.h"
#include "worker.h"

/* Means of the rows of a batch, in seconds. */
typedef struct gc_batch_rates {
    double host;        /* of a core for the files and rooms of a row, wherever it is convolved */
    double cpu, gpu;    /* of a core and of a GPU for its convolution; of a GPU with the bus */
    double start, next; /* until the first GPU convolves, and until each further one does */
    double write;       /* of all cores together to write its output */
} gc_batch_rates;

typedef struct gc_batch_share {
    int devices;      /* GPUs to use; 0: none */
    int feeders;      /* workers for the rows of the GPUs: as many as keep them busy */
    double gpus;      /* of all rows, those expected on GPUs */
    double seconds;   /* of the batch */
    double core, gpu; /* seconds of a core for a row, and of all GPUs with their feeders */
} gc_batch_share;

/* Returns the division with which a batch of `rows` rows ends first on `cores` cores and up to `devices` GPUs. GPUs
 * that save less than a quarter of the time are not used: they make the cores slower while they start. */
gc_batch_share gc_batch_divide(const gc_batch_rates *rates, int64_t rows, int cores, int devices);

/* Sets the seconds of a core so that a row takes the measured time. If this is shorter than the estimate, files and
 * convolution become shorter in proportion; if it is longer, only the convolution becomes longer. */
void gc_batch_measured(gc_batch_rates *rates, double seconds);

/* Fills *rates from some rows of a batch; those that cannot be opened do not count. gpu: a started GPU; NULL: one that
 * takes no time. Returns false if no row could be opened. */
bool gc_batch_estimate(const gc_worker *worker, const gc_device *gpu, gc_batch_rates *rates);

/* The slowest GPU to expect in a host that has several: a Tesla T4. */
extern const gc_device gc_batch_slow_gpu;

#endif
