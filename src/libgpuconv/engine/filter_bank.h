/*
 * The backend interface of a filter bank: many channels, each with its own response, processed on a GPU period by
 * period. The functions allocate and block: call them from a worker thread, never from an audio callback.
 */
#ifndef GC_ENGINE_FILTER_BANK_H
#define GC_ENGINE_FILTER_BANK_H

#include "gpuconv.h"

typedef struct gc_filter_bank gc_filter_bank;

typedef struct gc_filter_bank_config {
    int channels; /* 1..1048576 */
    int block;    /* frames per period, a power of two, 32..1024 */
    int64_t taps; /* of each response */
    int device;   /* -1: the device with the most multiprocessors */
    /* Writes the response of a channel; called once per channel, in order. */
    void (*response)(void *context, int channel, float *taps);
    void *context;
} gc_filter_bank_config;

typedef struct gc_filter_bank_backend {
    /* Creates a bank, transforms its responses and runs one period, so that later periods allocate nothing. Fails with
     * ARGUMENT, DEVICE or MEMORY. */
    gpuconv_status (*open)(const gc_filter_bank_config *config, gc_filter_bank **bank, gpuconv_error *error);

    /* Processes one period of channels x block frames, planar, without added latency. `in` is memory from `pin`, or any
     * memory. *out is owned by the bank and valid until the next call. Fails with DEVICE. */
    gpuconv_status (*process)(gc_filter_bank *bank, const float *in, const float **out, gpuconv_error *error);

    /* Allocates pinned host memory for inputs, to be freed before the bank. Returns NULL if there is too little. */
    float *(*pin)(gc_filter_bank *bank, int64_t floats);
    void (*unpin)(gc_filter_bank *bank, float *pinned);

    /* Returns one sentence: the partitions of the responses and the memory that they use. */
    const char *(*plan)(const gc_filter_bank *bank);
    void (*free)(gc_filter_bank *bank);
} gc_filter_bank_backend;

extern const gc_filter_bank_backend gc_filter_bank_cuda;

#endif
