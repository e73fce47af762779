/* Slots of a batch worker. A slot holds the decoded inputs of several tasks in buffers of a device; the device
 * convolves all of them at once. A worker has two slots, so that it decodes and encodes files in one while the device
 * convolves the other; it works with one slot if there is no memory for two. */
#ifndef GPUCONV_BATCH_SLOTS_H
#define GPUCONV_BATCH_SLOTS_H

#include "task.h"

typedef struct gc_slots gc_slots;

/* Creates as many slots as the backend proposes, or fewer if memory is short, at least one. Fails with DEVICE or MEMORY
 * if there is not even one. */
gpuconv_status gc_slots_new(const gc_worker *worker, gc_slots **slots, gpuconv_error *error);

/* Returns the name of the worker's device in reports. */
const char *gc_slots_where(const gc_slots *slots);

/* Decides whether a task can be convolved in a slot: its length is known, it fits, and no output is the sum of several
 * routes. Stores how each part is convolved. Depends on the task and the device only, so that every run computes the
 * same samples. */
bool gc_slots_accept(const gc_slots *slots, gc_task *task);

/* Adds an accepted task, and starts the slot once it is full. Errors of the task are reported; an error of the device
 * is reported for every task in the slot and returned. The slots own the task's files from here on. */
gpuconv_status gc_slots_add(gc_slots *slots, gc_task *task, gpuconv_error *error);

/* Starts convolving the slot that is being filled, and stores the outputs of the other one. */
gpuconv_status gc_slots_flush(gc_slots *slots, gpuconv_error *error);

/* Waits for all slots in flight and stores their outputs. Returns the first error of the device. */
gpuconv_status gc_slots_finish(gc_slots *slots, gpuconv_error *error);

/* Frees the slots; tasks that were not started are closed without a report. */
void gc_slots_free(gc_slots *slots);

#endif
