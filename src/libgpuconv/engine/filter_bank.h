/*
 * The seam between real time and a GPU that takes everything: a bank of channels, each with its own response, that is
 * served period by period. Nothing here is for an audio callback: a thread of its own calls it.
 */
#ifndef GC_ENGINE_FILTER_BANK_H
#define GC_ENGINE_FILTER_BANK_H

#include "gpuconv.h"

typedef struct gc_filter_bank gc_filter_bank;

typedef struct gc_filter_bank_config {
    int channels; /* 1..1048576 */
    int block;    /* frames a period, a power of two, 32..1024 */
    int64_t taps; /* of each response */
    int device;   /* -1: the one with the most multiprocessors */
    /* Writes the response of a channel; called once for each, in order. */
    void (*response)(void *context, int channel, float *taps);
    void *context;
} gc_filter_bank_config;

typedef struct gc_filter_bank_backend {
    /* Everything is allocated, prepared and has run once when this returns. ARGUMENT, DEVICE, MEMORY. */
    gpuconv_status (*open)(const gc_filter_bank_config *config, gc_filter_bank **bank, gpuconv_error *error);

    /* One period: channels x block frames, a channel after another, from `in` (memory that the bank pinned, or any) to
     * the bank's own output, which holds until the next call. No latency is added. DEVICE. */
    gpuconv_status (*process)(gc_filter_bank *bank, const float *in, const float **out, gpuconv_error *error);

    /* Pinned memory for inputs, to be given back before the bank is freed. NULL: none left. */
    float *(*pin)(gc_filter_bank *bank, int64_t floats);
    void (*unpin)(gc_filter_bank *bank, float *pinned);

    const char *(*plan)(
        const gc_filter_bank *bank); /* one sentence: how responses are cut up, and what memory they take */
    void (*free)(gc_filter_bank *bank);
} gc_filter_bank_backend;

extern const gc_filter_bank_backend gc_filter_bank_cuda;

#endif
