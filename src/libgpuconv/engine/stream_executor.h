/*
 * The backend interface of streams: a table of functions over whole convolvers, so that a backend is free to fuse
 * kernels, to keep all data on its device and to overlap copying with computing.
 *
 * A gc_stream processes chunks. The engine acquires an input slot, writes interleaved frames into it and submits it. It
 * waits for the oldest submitted slot, reads the same number of output frames from it and releases it. Acquire and
 * submit are called from one thread, wait and release from one thread; the two may be different threads. The engine
 * guarantees that:
 *   - every chunk before the last ones has plan->choice.chunk frames; after a shorter one only chunks of 0 input frames
 *     follow;
 *   - out_frames is plan->choice.chunk until the end of the result, which lies in the last chunk submitted;
 *   - at most plan->choice.slots chunks are in flight.
 */
#ifndef GC_ENGINE_STREAM_EXECUTOR_H
#define GC_ENGINE_STREAM_EXECUTOR_H

#include "gpuconv.h"
#include "libgpuconv/dsp/pcm.h"

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

typedef struct gc_stream_executor {
    /* Creates a stream that reads interleaved frames of format `in` and writes frames of format `out`. The plan must
     * outlive it. */
    gpuconv_status (*new)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_stream **stream, gpuconv_error *error);

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

    /* Returns the reason of the last DEVICE status as one sentence, or "". NULL: there is none. */
    const char *(*failure)(const gc_stream *stream);

    void (*free)(gc_stream *stream);
} gc_stream_executor;

#endif
