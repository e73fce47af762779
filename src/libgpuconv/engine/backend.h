/*
 * The backend interface that computes convolutions: a table of functions over whole convolvers, so that a backend is
 * free to fuse kernels, to keep all data on its device and to overlap copying with computing.
 *
 * A gc_stream processes chunks. The engine acquires an input slot, writes interleaved frames into it and submits it. It
 * waits for the oldest submitted slot, reads the same number of output frames from it and releases it. Acquire and
 * submit are called from one thread, wait and release from one thread; the two may be different threads. The engine
 * guarantees that:
 *   - every chunk before the last ones has plan->chunk frames; after a shorter one only chunks of 0 input frames
 * follow;
 *   - out_frames is plan->chunk until the end of the result, which lies in the last chunk submitted;
 *   - at most plan->slots chunks are in flight.
 */
#ifndef GC_ENGINE_BACKEND_H
#define GC_ENGINE_BACKEND_H

#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/ir/object.h"
#include "schedule.h"

/* Lengths of arrays with an element for each backend or algorithm, AUTO included. gpuconv_backend_name and
 * gpuconv_algorithm_name have the names. */
enum { GC_BACKENDS = GPUCONV_BACKEND_CUDA + 1, GC_ALGORITHMS = GPUCONV_ALGORITHM_MATRIX + 1 };

/* The properties of a processor that planning needs. */
typedef struct gc_device {
    char name[128];
    int number;    /* of the CUDA device; 0 for the CPU */
    int threads;   /* CPU threads to use */
    double memory; /* bytes of a GPU that plans may use: the whole device, or what is free once it is `started` */
    bool started;  /* free_memory has set `memory` */
    int multiprocessors;
    int64_t shared_memory; /* bytes that one thread block can use */
    bool tensor_cores;     /* has FP16 tensor cores, many times faster than FP32 multiply-adds */
} gc_device;

enum { GC_TIMELINE = 48 }; /* chunks whose times are kept */

/* Begin and end of each stage of one chunk, in seconds since the stream's first submit. */
typedef struct gc_chunk_times {
    double copy_in[2], compute[2], copy_out[2];
} gc_chunk_times;

typedef struct gc_stream_stats {
    double setup, copy_in, compute, copy_out; /* seconds, summed over chunks */
    int64_t chunks;
    int timed_chunks; /* entries in `times`: the first GC_TIMELINE chunks */
    gc_chunk_times times[GC_TIMELINE];
    gc_pcm_overs overs;
} gc_stream_stats;

typedef struct gc_stream gc_stream;

typedef struct gc_backend {
    gpuconv_backend id;

    /* Detects the processor and fills *device. Fails with DEVICE, and a reason, if there is none. */
    gpuconv_status (*probe)(const gpuconv_config *config, gc_device *device, gpuconv_error *error);

    /* Sets device->memory to the bytes that are free now, and device->started. Starts the device. NULL: memory does not
     * bound plans. Fails with DEVICE, and a reason. */
    gpuconv_status (*free_memory)(gc_device *device, gpuconv_error *error);

    /* Starts the device that probe would choose and makes it the current device of the thread, so that new_stream finds
     * it started. NULL: there is nothing to start. */
    gpuconv_status (*start)(const gpuconv_config *config, gpuconv_error *error);

    /* Fills plan->schedule, chunk, slots, predicted and, where algorithms are not ranked by the predicted time, cost,
     * for one algorithm (never AUTO). plan->ir and plan->device are set. Fails with UNSUPPORTED, and a reason, if the
     * algorithm cannot convolve with this response; plan->bytes is then the memory that is missing for it, or 0. */
    gpuconv_status (*plan)(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error);

    /* Creates a stream that reads interleaved frames of format `in` and writes frames of format `out`. The plan must
     * outlive it. */
    gpuconv_status (*new_stream)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_stream **stream,
                                 gpuconv_error *error);

    /* Blocks until an input slot is free and sets *raw to its memory. */
    gpuconv_status (*acquire)(gc_stream *stream, void **raw);

    /* Queues the acquired slot: `in_frames` frames were written into it, `out_frames` frames are to be computed. */
    gpuconv_status (*submit)(gc_stream *stream, int64_t in_frames, int64_t out_frames);

    /* Announces that no chunk will follow. */
    gpuconv_status (*finish)(gc_stream *stream);

    /* Blocks until the oldest submitted chunk is computed and sets *raw to its output. *frames is 0 after `finish` once
     * all chunks have been released. */
    gpuconv_status (*wait)(gc_stream *stream, const void **raw, int64_t *frames);

    /* Returns the slot of the last `wait` to the free input slots. */
    void (*release)(gc_stream *stream);

    /* Makes all blocked and later calls return CANCELLED. May be called from any thread. */
    void (*stop)(gc_stream *stream);

    /* Puts the stream back to its state before the first chunk. */
    gpuconv_status (*reset)(gc_stream *stream);

    /* Copies the statistics. Call it when no chunk is in flight. */
    void (*measure)(gc_stream *stream, gc_stream_stats *stats);

    /* Returns the reason of the last DEVICE status as one sentence, or "". */
    const char *(*failure)(const gc_stream *stream);

    void (*free)(gc_stream *stream);
} gc_backend;

/* Use gc_backend_find (backends.h): a build may lack CUDA. */
extern const gc_backend gc_backend_cpu, gc_backend_cuda;

#endif
