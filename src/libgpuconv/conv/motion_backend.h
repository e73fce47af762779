/* The backend interface of moving sources on a GPU, a chunk of hops at a time. The functions allocate and block: call
 * them from a worker thread, never from an audio callback. */
#ifndef GC_CONV_MOTION_BACKEND_H
#define GC_CONV_MOTION_BACKEND_H

#include "gpuconv.h"

typedef struct gc_motion_gpu gc_motion_gpu;

/* The response of a direction, as space/motion_render.c makes it of measured ones. */
typedef struct gc_motion_blend {
    int response[3];
    float weight[3], gain;
} gc_motion_blend;

typedef struct gc_motion_options {
    int channels, receivers, responses;
    int64_t hop, hops;    /* frames of a hop, hops of the longest chunk */
    int64_t points, taps; /* of a transform, of a response */
    int64_t past;         /* frames before a chunk that delays reach back to */
    int device;           /* -1: the device with the most multiprocessors */
    const float *filters; /* of delays: GC_DELAY_PHASES + 1 rows of GC_DELAY_TAPS taps */
    /* Writes the responses of a measurement without delays: receivers x taps, zeroed. Returns MEMORY, CANCELLED. */
    gpuconv_status (*response)(void *context, int response, float *taps, gpuconv_error *error);
    void *context;
} gc_motion_options;

/* A chunk. Moments are the beginnings of its hops, and its end. */
typedef struct gc_motion_work {
    int64_t hops;
    const float *in;              /* channels x hops x hop frames, from alloc_pinned */
    const gc_motion_blend *blend; /* moments x channels */
    const double *delay;          /* moments x channels x receivers, in frames */
} gc_motion_work;

typedef struct gc_motion_backend {
    /* Fails with ARGUMENT, UNSUPPORTED (points, shared memory), DEVICE, MEMORY, CANCELLED. */
    gpuconv_status (*open)(const gc_motion_options *options, gc_motion_gpu **gpu, gpuconv_error *error);

    /* Renders the next chunk. *out gets hops x receivers x points frames, which each hop adds to the result from its
     * first frame on; they are valid until the next call. Fails with DEVICE. */
    gpuconv_status (*render)(gc_motion_gpu *gpu, const gc_motion_work *chunk, const float **out, gpuconv_error *error);

    /* Allocates pinned host memory, to be freed before the object. Returns NULL if there is too little. */
    float *(*alloc_pinned)(gc_motion_gpu *gpu, int64_t floats);
    void (*free_pinned)(gc_motion_gpu *gpu, float *pinned);

    int64_t (*bytes)(const gc_motion_gpu *gpu); /* of device memory */
    void (*free)(gc_motion_gpu *gpu);
} gc_motion_backend;

extern const gc_motion_backend gc_motion_cuda;

#endif
