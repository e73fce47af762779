/* Fibers: threads of a kernel on one thread of the CPU, each with its own stack. */
#ifndef GPULAB_EMULATOR_FIBER_H
#define GPULAB_EMULATOR_FIBER_H

#include <stdbool.h>

typedef struct gc_fiber gc_fiber;

/* Creates a fiber whose first gc_fiber_enter calls `run`, which never returns. NULL without memory. */
gc_fiber *gc_fiber_new(void (*run)(gc_fiber *self));
void gc_fiber_free(gc_fiber *fiber);

/* Continues the fiber until it calls gc_fiber_leave. */
void gc_fiber_enter(gc_fiber *fiber);

/* Called on the fiber: returns from gc_fiber_enter. */
void gc_fiber_leave(gc_fiber *fiber);

/* Returns whether an address lies on the fiber's stack. */
bool gc_fiber_has(const gc_fiber *fiber, const void *address);

#endif
