/* The device in words: what it has, and how many blocks of a launch it holds at a time. */
#ifndef GPULAB_ABOUT_H
#define GPULAB_ABOUT_H

#include "session.h"

typedef struct gc_lab_shape {
    int threads, registers; /* a block, a thread */
    int64_t shared;         /* bytes a block */
} gc_lab_shape;

void gc_lab_about(const gc_lab_session *session, const gc_lab_shape *shape, FILE *to);

/* Blocks that a multiprocessor holds at a time; *limit names what is used up first. 0: not even one. */
int gc_lab_occupancy(const gc_lab_device_info *device, const gc_lab_shape *shape, const char **limit);

#endif
