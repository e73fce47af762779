/* The definition of gpuconv_plan: backend, schedule of the algorithm, and the sizes that the engine uses. */
#ifndef GC_ENGINE_PLAN_H
#define GC_ENGINE_PLAN_H

#include "backend.h"

/* Most chunks in flight of a plan whose latency is bounded: one is filled, one computed, one taken. */
enum { GC_BOUNDED_SLOTS = 3 };

struct gpuconv_plan {
    _Atomic int references;
    const struct gc_backend *backend;
    gpuconv_ir *ir;
    gc_device device;
    gc_schedule schedule;
    int64_t chunk;      /* frames */
    int slots;          /* most chunks in flight */
    int64_t chunk_most; /* frames that the latency asked for allows a chunk, with GC_BOUNDED_SLOTS; 0: any number */
    double predicted;   /* seconds for the expected frames */
    double cost;        /* ranks the algorithms of this backend; 0: `predicted` ranks them */
    double bytes;       /* memory of the convolution, from the same model; 0: unknown */
    int64_t products;   /* routes that dense matrices of all components would have; 0: unknown */
    char reason[256], note[256];
};

/* Reads a caller's configuration of any version; does not check the ranges of its fields. @return ARGUMENT */
gpuconv_status gc_config_read(const gpuconv_config *from, gpuconv_config *config, gpuconv_error *error);

/* Shortens the chunk of a plan of the CUDA backend, and the transforms that are longer, to plan->chunk_most frames.
 * Returns UNSUPPORTED if the algorithm has no blocks so short. */
gpuconv_status gc_plan_shorten(gpuconv_plan *plan, gpuconv_error *error);

/* Adds a reference, which gpuconv_plan_free drops, and returns the plan. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

#endif
