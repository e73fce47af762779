/*
 * The seam between batches and what convolves: lanes, each with buffers of its own - and on a GPU with a stream - that
 * belong to one thread at a time. Lanes of one device run side by side. The CPU is one device.
 */
#ifndef GC_ENGINE_BATCH_CONVOLVER_H
#define GC_ENGINE_BATCH_CONVOLVER_H

#include "gpuconv.h"
#include "libgpuconv/dsp/pcm.h"

/* One channel in a lane's input or output: sample n is the n step-th from byte `at` on, a multiple of its size. */
typedef struct gc_batch_samples {
    int64_t at;
    gc_pcm format;
    int step;
} gc_batch_samples;

/* `frames` frames of a channel, and its result of frames + taps_count - 1. */
typedef struct gc_batch_item {
    gc_batch_samples in, out;
    int64_t frames, taps_count;
    const float *taps; /* where the device reads them; NULL: in the lane's input, */
    int64_t taps_at;   /* from this byte on, a multiple of 16 */
    int64_t clipped;   /* found by `finish`: samples that did not fit an output of integers */
} gc_batch_item;

typedef struct gc_batch_slot gc_batch_slot;

typedef struct gc_batch_backend {
    /* Up to so many taps samples come and go as files store them, beyond that they go as floats; 0: channels are
     * floats, one after the other (step 1), both ways. */
    int64_t stored_taps;

    /* How many devices there are, asleep or awake; 0 with a reason. */
    int (*devices)(gpuconv_error *error);

    /* Wakes one, which takes a GPU an eighth of a second; its first lane would. NULL: none sleeps. DEVICE. */
    gpuconv_status (*wake)(int device, gpuconv_error *error);

    /* Lanes that a worker is to have, so that it fills one while another convolves; it gets along with one. */
    int slots;

    /* A lane with room for so many bytes each way and so many items. DEVICE, MEMORY (here or on the device). */
    gpuconv_status (*new_slot)(int device, int64_t bytes, int items, gc_batch_slot **slot, gpuconv_error *error);

    /* Whether the slot is to do a file of so many frames through `ir`, and do so until the next question: it plans as
     * an engine does, so that the bytes are the same. NULL: always. */
    bool (*suits)(gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames);
    void *(*in)(gc_batch_slot *slot); /* host memory */
    const void *(*out)(gc_batch_slot *slot);

    /* Begins to convolve. DEVICE, MEMORY. */
    gpuconv_status (*begin)(gc_batch_slot *slot, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error);
    /* Waits for what was begun with these items: results stand in `out`, counts in the items. DEVICE. */
    gpuconv_status (*finish)(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error);
    void (*free)(gc_batch_slot *slot);

    /* For benchmarks, NULL on the CPU: on each of the devices `signals` signals of `frames`, each through its own
     * response, from memory of the device to memory of the device, all devices at once. seconds[run]: one such batch, a
     * share of several queued together. *off: relative RMS error in dB at some hundred frames. DEVICE, MEMORY. */
    gpuconv_status (*time_batch)(const int *device, int devices, int64_t signals, int64_t frames, int64_t taps,
                                 int runs, double *seconds, double *off, gpuconv_error *error);

    /* Responses on a device. NULL: no memory there. */
    float *(*keep)(int device, const float *planes, int64_t floats);
    void (*forget)(int device, float *planes);
} gc_batch_backend;

extern const gc_batch_backend gc_batch_cpu, gc_batch_cuda;

#endif
