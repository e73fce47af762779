/* Rendering: convolves a task whose output is mixed in memory and does not fit into a slot. */
#ifndef GPUCONV_BATCH_RENDER_H
#define GPUCONV_BATCH_RENDER_H

#include "task.h"

/* Reads the inputs, convolves every part with an engine of its own (worker_engine.h) and stores the outputs. The memory
 * grows with the length of the input. device: the name of the worker's device. Fails as the reader, gc_worker_engine
 * and gc_store_rows. */
gpuconv_status gc_render(const gc_worker *worker, gc_task *task, const char *device, gpuconv_error *error);

#endif
