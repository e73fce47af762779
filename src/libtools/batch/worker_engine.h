/* The engine for a task that no slot takes. */
#ifndef GPUCONV_BATCH_WORKER_ENGINE_H
#define GPUCONV_BATCH_WORKER_ENGINE_H

#include "work.h"

/* Makes an engine for inputs of `frames` frames, -1: unknown, with interleaved samples of the formats `in` and `out`.
 * It computes on the worker's GPU, or on all cores if the GPU cannot; in a batch on the CPU, whose workers occupy the
 * cores, on one thread. The caller frees plan and engine, also after a failure. Fails as gpuconv_plan_new and
 * gpuconv_engine_new. */
gpuconv_status gc_worker_engine(const gc_worker *worker, const gpuconv_ir *ir, int64_t frames, gc_pcm in, gc_pcm out,
                                gpuconv_plan **plan, gpuconv_engine **engine, gpuconv_error *error);

#endif
