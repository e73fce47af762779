/*
 * The seam between the engine and what computes: a table of functions over whole convolvers, so that a backend may
 * fuse, keep everything on its device and overlap as it likes.
 *
 * A state works on chunks. The engine acquires an input slot, writes interleaved frames into it, submits it, and takes
 * the same number of output frames from the oldest submitted slot, which it then releases. Acquire and submit come from
 * one thread, wait and release from one thread, which may be another. What the engine guarantees:
 *   - every chunk but the last ones has plan->chunk frames; after a shorter one only chunks of 0 input frames follow;
 *   - out_frames is plan->chunk until the result's end, which falls into the last chunk submitted;
 *   - at most plan->slots chunks are in flight.
 */
#ifndef GC_ENGINE_BACKEND_H
#define GC_ENGINE_BACKEND_H

#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/ir/object.h"
#include "schedule.h"

/* What a processor is, as far as choosing needs it. */
typedef struct gc_device {
    char name[128];
    int number;    /* CUDA device, else 0 */
    int threads;   /* CPU threads in use */
    double memory; /* bytes free for us */
    int multiprocessors;
    int64_t shared_memory; /* bytes a block may take */
    bool tensor_cores;     /* that sum products of halves many times faster than multiply-adds */
} gc_device;

enum { GC_TIMELINE = 48 };

/* One chunk's way through a state, seconds since its first submit: begin and end of each stage. */
typedef struct gc_chunk_times {
    double copy_in[2], compute[2], copy_out[2];
} gc_chunk_times;

typedef struct gc_stream_stats {
    double setup, copy_in, compute, copy_out; /* seconds, summed over chunks */
    int64_t chunks;
    int passages; /* of the first GC_TIMELINE chunks */
    gc_chunk_times passage[GC_TIMELINE];
    gc_pcm_overs overs;
} gc_stream_stats;

typedef struct gc_stream gc_stream;

typedef struct gc_backend {
    gpuconv_backend id;

    /* Is the processor there, and what is it? DEVICE with a reason when not. */
    gpuconv_status (*probe)(const gpuconv_config *config, gc_device *device, gpuconv_error *error);

    /* Fills plan->schedule, chunk, slots, predicted and, where it differs from predicted, compared for one algorithm
     * (never AUTO); plan->ir and plan->device are set. UNSUPPORTED with a reason when it cannot. */
    gpuconv_status (*plan)(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

    gpuconv_status (*state)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_stream **state, gpuconv_error *error);
    gpuconv_status (*acquire)(gc_stream *state, void **raw);
    gpuconv_status (*submit)(gc_stream *state, int64_t in_frames, int64_t out_frames);
    gpuconv_status (*finish)(gc_stream *state);                                  /* no more will be submitted */
    gpuconv_status (*wait)(gc_stream *state, const void **raw, int64_t *frames); /* 0 frames: finished and empty */
    void (*release)(gc_stream *state);
    void (*stop)(gc_stream *state); /* from any thread: every waiting call returns CANCELLED from now on */
    gpuconv_status (*reset)(gc_stream *state);
    void (*measure)(gc_stream *state, gc_stream_stats *measurement); /* when nothing is in flight */
    const char *(*failure)(const gc_stream *state);                  /* why DEVICE came back: one sentence, or "" */
    void (*free)(gc_stream *state);
} gc_backend;

/* The tables of the CPU and of CUDA; engine/backends.h finds those that this build has. */
extern const gc_backend gc_backend_cpu, gc_backend_cuda;

#endif
