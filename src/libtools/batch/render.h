/* Rendering: convolves a task whose output is mixed in memory and does not fit into a slot. */
#ifndef GPUCONV_BATCH_RENDER_H
#define GPUCONV_BATCH_RENDER_H

#include "task.h"

/* Reads the inputs, convolves every part with an engine of one thread and stores the outputs. The memory grows with the
 * length of the input. Fails as the reader, gpuconv_plan_new and gc_store_rows. */
gpuconv_status gc_render(const gc_worker *worker, gc_task *task, int64_t *clipped, gpuconv_error *error);

#endif
