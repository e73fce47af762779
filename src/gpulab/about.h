/* The device's properties as text, and the occupancy of a launch on it. */
#ifndef GPULAB_ABOUT_H
#define GPULAB_ABOUT_H

#include "session.h"

/* What a thread block uses. */
typedef struct gc_lab_block_shape {
    int threads;
    int registers;  /* per thread */
    int64_t shared; /* bytes of shared memory */
} gc_lab_block_shape;

void gc_lab_print_device(const gc_lab_session *session, const gc_lab_block_shape *shape, FILE *to);

#endif
