/*
 * The backend interface of filter banks, processed on a GPU period by period: many channels, each with its own
 * response, or a matrix, whose outputs are sums of inputs through a response each. The functions allocate and block:
 * call them from a worker thread, never from an audio callback.
 */
#ifndef GC_ENGINE_FILTER_BANK_H
#define GC_ENGINE_FILTER_BANK_H

#include "libgpuconv/ir/object.h"

typedef struct gc_filter_bank gc_filter_bank;

typedef struct gc_filter_bank_config {
    int channels; /* responses: 1..1048576 */
    int block;    /* frames per period, a power of two, 32..1024 */
    int64_t taps; /* of each response */
    int device;   /* -1: the device with the most multiprocessors */
    /* Of a matrix, for gc_matrix_bank_cuda: inputs and outputs, 1..4096, and those of each response; `plane` is not
     * used. `open` copies what it needs. */
    int inputs, outputs;
    const gc_route *route;
    /* Writes the response of a channel; called once per channel, in order. */
    void (*response)(void *context, int channel, float *taps);
    void *context;
} gc_filter_bank_config;

typedef struct gc_filter_bank_backend {
    /* Creates a bank, transforms its responses and runs one period, so that later periods allocate nothing. Fails with
     * ARGUMENT, DEVICE or MEMORY. */
    gpuconv_status (*open)(const gc_filter_bank_config *config, gc_filter_bank **bank, gpuconv_error *error);

    /* Processes one period of channels (a matrix: inputs) x block frames, planar, without added latency, to channels
     * (outputs) x block frames. `in` is memory from `alloc_pinned`, or any memory. *out is owned by the bank and valid
     * until the next call. Fails with DEVICE. */
    gpuconv_status (*process)(gc_filter_bank *bank, const float *in, const float **out, gpuconv_error *error);

    /* Allocates pinned host memory for inputs, to be freed before the bank. Returns NULL if there is too little. */
    float *(*alloc_pinned)(gc_filter_bank *bank, int64_t floats);
    void (*free_pinned)(gc_filter_bank *bank, float *pinned);

    /* Returns one sentence: the partitions of the responses and the memory that they use. */
    const char *(*plan)(const gc_filter_bank *bank);
    void (*free)(gc_filter_bank *bank);
} gc_filter_bank_backend;

extern const gc_filter_bank_backend gc_filter_bank_cuda, gc_matrix_bank_cuda;

#endif
