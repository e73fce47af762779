/*
 * The chunk interface of an engine, for callers that hold samples in the formats of files. A producer thread acquires
 * and submits input chunks, a consumer thread takes and releases output chunks. The engine computes where the result
 * ends.
 */
#ifndef GC_CONV_ENGINE_H
#define GC_CONV_ENGINE_H

#include "backend.h"

/* Creates an engine as gpuconv_engine_new does, for interleaved samples of the given formats. */
gpuconv_status gc_engine_new(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gpuconv_engine **engine,
                             gpuconv_error *error);

/* Producer: blocks until an input chunk is free and sets *raw to its memory, for plan->choice.chunk interleaved frames.
 * Returns CANCELLED after gc_engine_stop. */
gpuconv_status gc_engine_acquire(gpuconv_engine *engine, void **raw);

/* Producer: submits the acquired chunk with `frames` frames; fewer than plan->choice.chunk end the input. Fails with
 * DEVICE or CANCELLED. */
gpuconv_status gc_engine_submit(gpuconv_engine *engine, int64_t frames);

/* Producer: submits empty chunks for the rest of the tail; no input may follow. Fails with DEVICE or CANCELLED. */
gpuconv_status gc_engine_flush(gpuconv_engine *engine);

/* Consumer: blocks until the next output chunk is computed; *frames is 0 at the end of the result. Fails with DEVICE or
 * CANCELLED. */
gpuconv_status gc_engine_take(gpuconv_engine *engine, const void **raw, int64_t *frames);

/* Consumer: gives the chunk of the last gc_engine_take back. */
void gc_engine_release(gpuconv_engine *engine);

/* Returns the number of frames by which the result is longer than the input. */
int64_t gc_engine_tail(const gpuconv_engine *engine);

/* Makes all blocked and later calls return CANCELLED. May be called from any thread. */
void gc_engine_stop(gpuconv_engine *engine);

/* Returns one sentence about a status that this engine returned. */
const char *gc_engine_failure(const gpuconv_engine *engine, gpuconv_status status);

/* Copies stage times and clipped samples. Call it when no chunk is in flight. */
void gc_engine_measure(gpuconv_engine *engine, gc_stream_stats *stats);

#endif
