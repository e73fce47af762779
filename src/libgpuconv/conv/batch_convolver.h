/*
 * The backend interface for batches. A slot owns input and output buffers (on a GPU also a CUDA stream) and is used by
 * one thread at a time. The slots of one device work concurrently.
 */
#ifndef GC_CONV_BATCH_CONVOLVER_H
#define GC_CONV_BATCH_CONVOLVER_H

#include "algorithm.h"
#include "libgpuconv/dsp/pcm.h"

/* Samples in the input or output buffer of a slot, from byte `at` on, a multiple of 16: interleaved, or, if `row` is
 * not 0, floats, each channel `row` bytes behind the one before. */
typedef struct gc_batch_samples {
    int64_t at;
    gc_pcm format;
    int channels;
    int64_t row;
} gc_batch_samples;

/* A file of `frames` frames to convolve with a response that has one route for each output; the result has frames +
 * ir->frames - 1 frames. */
typedef struct gc_batch_item {
    const gpuconv_ir *ir;
    gc_batch_samples in, out; /* `in` is interleaved */
    int64_t frames;
    const float *planes; /* the taps of ir in the device's memory; NULL: in the input buffer from byte `planes_at` on */
    int64_t planes_at;   /* a multiple of 16 */
    gc_choice choice;    /* from `choose` */
    int64_t clipped;     /* set by `finish`: samples clipped to the range of an integer output */
} gc_batch_item;

/* The beginning of a backend's slot. */
typedef struct gc_batch_slot {
    char *in, *out; /* buffers in host memory */
} gc_batch_slot;

typedef struct gc_batch_backend {
    /* Returns the number of devices, initialised or not; 0 with a reason in *error. NULL on the CPU. */
    int (*devices)(gpuconv_error *error);

    /* Optional. Initialises a device, which takes 1/8 s on a GPU and otherwise happens in the first `new_slot`. Fails
     * with DEVICE. NULL: devices need no initialisation. */
    gpuconv_status (*init_device)(int device, gpuconv_error *error);

    /* Slots that a worker should own, so that it fills one while another computes. One is enough to work. */
    int slots;

    /* Creates a slot with input and output buffers of `bytes` bytes each, for items of up to `outputs` outputs in all.
     * Fails with DEVICE, or with MEMORY if the host or the device has too little. */
    gpuconv_status (*new_slot)(int device, int64_t bytes, int outputs, gc_batch_slot **slot, gpuconv_error *error);

    /* Optional. Chooses how a slot convolves files of `frames` frames with `ir`, as the plan of an engine does, so that
     * the output has the same bytes. Returns false if slots do not have the algorithm. NULL: slots need no choice. */
    bool (*choose)(const gc_batch_slot *slot, const gpuconv_ir *ir, int64_t frames, gc_choice *choice);

    /* Starts to convolve `count` items. Fails with DEVICE or MEMORY. */
    gpuconv_status (*begin)(gc_batch_slot *slot, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error);

    /* Blocks until the items of the last `begin` are computed: the results are in `out`, the clipped samples are
     * counted in the items. Fails with DEVICE. NULL: `begin` computes them. */
    gpuconv_status (*finish)(gc_batch_slot *slot, gc_batch_item *items, int count, gpuconv_error *error);
    void (*free)(gc_batch_slot *slot);

    /* Copies responses to a device, for gc_batch_item.planes. Returns NULL if the device has too little memory. NULL:
     * the device reads them where they are. */
    float *(*upload_taps)(int device, const float *planes, int64_t floats);

    /* Frees what `upload_taps` returned; NULL with it. */
    void (*free_taps)(int device, float *planes);
} gc_batch_backend;

extern const gc_batch_backend gc_batch_cpu, gc_batch_cuda;

#endif
