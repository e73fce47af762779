/* The description of a convolution, which a planner reads and every door that plans one fills. */
#ifndef GC_ENGINE_PROBLEM_H
#define GC_ENGINE_PROBLEM_H

#include "components.h"

/* Most chunks in flight where the latency is bounded: one is filled, one computed, one taken. */
enum { GC_BOUNDED_SLOTS = 3 };

typedef struct gc_problem {
    const gpuconv_ir *ir; /* inputs, outputs, routes and taps */
    gc_components components;
    int64_t products;   /* routes that dense matrices of all components would have */
    int64_t frames;     /* of the input; negative: unknown */
    int64_t chunk_most; /* frames that the latency allows a chunk, with GC_BOUNDED_SLOTS; 0: any number */
} gc_problem;

/* Fills *problem for `frames` frames of input (negative: unknown) and at most `latency` frames of latency (0 or less:
 * any). The response must outlive it. Returns false without memory; *problem can then be freed all the same. */
bool gc_problem_init(gc_problem *problem, const gpuconv_ir *ir, int64_t frames, int64_t latency);
void gc_problem_free(gc_problem *problem);

/* Returns the frames to plan for: those of the input, but at most `most`, and `most` if they are unknown. A pipe and a
 * long file with the same samples then have the same plan, and give the same bytes. */
int64_t gc_problem_frames(const gc_problem *problem, int64_t most);

#endif
