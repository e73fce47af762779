/*
 * The backend interface for batches. A slot owns input and output buffers (on a GPU also a CUDA stream) and is used by
 * one thread at a time. The slots of one device work concurrently. The CPU counts as one device.
 */
#ifndef GC_ENGINE_BATCH_CONVOLVER_H
#define GC_ENGINE_BATCH_CONVOLVER_H

#include "gpuconv.h"
#include "libgpuconv/dsp/pcm.h"

/* One channel in the input or output buffer of a slot. Sample n lies n * step samples behind byte `at`, which is a
 * multiple of the sample's size. */
typedef struct gc_batch_samples {
    int64_t at;
    gc_pcm format;
    int step;
} gc_batch_samples;

/* One channel of `frames` frames to convolve; the result has frames + taps_count - 1 frames. */
typedef struct gc_batch_item {
    gc_batch_samples in, out;
    int64_t frames, taps_count;
    const float *taps; /* in the device's memory; NULL: in the slot's input buffer from byte `taps_at` on */
    int64_t taps_at;   /* a multiple of 16 */
    int64_t clipped;   /* set by `finish`: samples clipped to the range of an integer output */
} gc_batch_item;

typedef struct gc_batch_slot gc_batch_slot;

typedef struct gc_batch_backend {
    /* Longest response, in taps, for which samples are copied in the files' own formats. Longer responses, and all of
     * them if this is 0, use planar floats (step 1) for input and output. */
    int64_t stored_taps;

    /* Returns the number of devices, initialised or not; 0 with a reason in *error. */
    int (*devices)(gpuconv_error *error);

    /* Optional. Initialises a device, which takes 1/8 s on a GPU and otherwise happens in the first `new_slot`. Fails
     * with DEVICE. NULL: devices need no initialisation. */
    gpuconv_status (*wake)(int device, gpuconv_error *error);

    /* Slots that a worker should own, so that it fills one while another computes. One is enough to work. */
    int slots;

    /* Creates a slot with input and output buffers of `bytes` bytes each, for up to `items` items. Fails with DEVICE,
     * or with MEMORY if the host or the device has too little. */
    gpuconv_status (*new_slot)(int device, int64_t bytes, int items, gc_batch_slot **slot, gpuconv_error *error);

    /* Optional. Returns whether the slot should convolve files of `frames` frames with `ir`, and prepares it for them
     * until the next call. Plans as an engine does, so that the output has the same bytes. NULL: always true. */
    bool (*suits)(gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames);

    /* Return the input and output buffers, which lie in host memory. */
    void *(*in)(gc_batch_slot *slot);
    const void *(*out)(gc_batch_slot *slot);

    /* Starts to convolve `count` items. Fails with DEVICE or MEMORY. */
    gpuconv_status (*begin)(gc_batch_slot *slot, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error);

    /* Blocks until the items of the last `begin` are computed: the results are in `out`, the clipped samples are
     * counted in the items. Fails with DEVICE. */
    gpuconv_status (*finish)(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error);
    void (*free)(gc_batch_slot *slot);

    /* Optional, for benchmarks; NULL on the CPU. Convolves, on all listed devices at once, `signals` signals of
     * `frames` frames, each with its own response, from device memory to device memory. seconds[run] is the time of one
     * such batch, as a share of several queued together. *off is the relative RMS error in dB over some hundred frames.
     * Fails with DEVICE or MEMORY. */
    gpuconv_status (*time_batch)(const int *device, int devices, int64_t signals, int64_t frames, int64_t taps,
                                 int runs, double *seconds, double *off, gpuconv_error *error);

    /* Makes responses readable by a device, on a GPU by a copy, and returns them for gc_batch_item.taps. Returns NULL
     * if the device has too little memory. */
    float *(*keep)(int device, const float *planes, int64_t floats);

    /* Frees what `keep` returned. */
    void (*forget)(int device, float *planes);
} gc_batch_backend;

extern const gc_batch_backend gc_batch_cpu, gc_batch_cuda;

#endif
