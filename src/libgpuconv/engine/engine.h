/*
 * The chunk interface of an engine, for those who bring samples as files store them: a producer thread acquires and
 * submits, a consumer thread takes and releases. The engine knows where the result ends.
 */
#ifndef GC_ENGINE_ENGINE_H
#define GC_ENGINE_ENGINE_H

#include "backend.h"

/* As gpuconv_engine_new, for interleaved samples of the given formats. */
gpuconv_status gc_engine_new(const gpuconv_plan *plan, gc_pcm in, gc_pcm out, gpuconv_engine **engine,
                             gpuconv_error *error);

/* Producer: room for a whole chunk of interleaved input. CANCELLED once stopped. */
gpuconv_status gc_engine_acquire(gpuconv_engine *engine, void **raw);

/* Producer: the acquired room holds `frames` frames; fewer than a chunk ends the input. DEVICE, CANCELLED. */
gpuconv_status gc_engine_submit(gpuconv_engine *engine, int64_t frames);

/* Producer: submits what is left of the tail; nothing may follow. DEVICE, CANCELLED. */
gpuconv_status gc_engine_flush(gpuconv_engine *engine);

/* Consumer: the next frames of the result, 0 at its end. DEVICE, CANCELLED. */
gpuconv_status gc_engine_take(gpuconv_engine *engine, const void **raw, int64_t *frames);
void gc_engine_release(gpuconv_engine *engine);

/* Frames by which the result is longer than the input. */
int64_t gc_engine_tail(const gpuconv_engine *engine);

/* Wakes both sides with CANCELLED; from any thread. */
void gc_engine_stop(gpuconv_engine *engine);

/* A sentence for a status that this engine gave. */
const char *gc_engine_failure(const gpuconv_engine *engine, gpuconv_status status);

/* Stage times and overs; when nothing is in flight. */
void gc_engine_measure(gpuconv_engine *engine, gc_stream_stats *measurement);

#endif
