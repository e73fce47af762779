/*
 * The backend interface of streams: a table of functions over whole convolvers, so that a backend is free to fuse
 * kernels, to keep all data on its device and to overlap copying with computing.
 *
 * A gc_stream processes chunks. The engine acquires a slot of the queue, writes interleaved frames into its input and
 * submits it. It waits for the oldest submitted slot, reads its output and releases it. The engine
 * guarantees that:
 *   - every chunk before the last ones has plan->choice.chunk frames; after a shorter one only chunks of 0 input frames
 *     follow;
 *   - out_frames is plan->choice.chunk until the end of the result, which lies in the last chunk submitted;
 *   - at most plan->choice.slots chunks are in flight.
 */
#ifndef GC_CONV_STREAM_EXECUTOR_H
#define GC_CONV_STREAM_EXECUTOR_H

#include "gpuconv.h"
#include "libgpuconv/core/slot_queue.h"
#include "libgpuconv/dsp/pcm.h"

enum { GC_TIMELINE = 48 /* chunks whose times are kept */, GC_SLOTS_MAX = 6 /* chunks in flight */ };

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

typedef struct gc_chunk {
    void *in, *out; /* host memory of the stream */
    int64_t in_frames, out_frames;
} gc_chunk;

/* The slots of a stream, between the thread that submits, that of the stream and the one that waits. */
typedef struct gc_chunks {
    gc_slot_queue queue;
    gc_chunk slot[GC_SLOTS_MAX];
} gc_chunks;

typedef struct gc_stream gc_stream;

typedef struct gc_stream_executor {
    /* Creates a stream that reads interleaved frames of format `in` and writes frames of format `out`, and sets the
     * memory of the slots. The plan and the chunks must outlive it. */
    gpuconv_status (*new)(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gc_chunks *chunks, gc_stream **stream,
                          gpuconv_error *error);

    /* Queues the computation of a slot on the device. NULL: a thread of the stream takes slots from the queue. */
    gpuconv_status (*submit)(gc_stream *stream, int slot);

    /* Blocks until the output of a submitted slot is in host memory; NULL with `submit`. */
    gpuconv_status (*wait)(gc_stream *stream, int slot);

    /* Puts the stream and the queue back to their state before the first chunk. */
    gpuconv_status (*reset)(gc_stream *stream);

    /* Copies the statistics. Call it when no chunk is in flight. */
    void (*measure)(gc_stream *stream, gc_stream_stats *stats);

    /* Returns the reason of the last DEVICE status as one sentence, or "". NULL: there is none. */
    const char *(*failure)(const gc_stream *stream);

    void (*free)(gc_stream *stream);
} gc_stream_executor;

#endif
