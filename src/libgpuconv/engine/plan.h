/* The definition of gpuconv_plan: backend, schedule of the algorithm, and the sizes that the engine uses. */
#ifndef GC_ENGINE_PLAN_H
#define GC_ENGINE_PLAN_H

#include "backend.h"

struct gpuconv_plan {
    _Atomic int references;
    const struct gc_backend *backend;
    gpuconv_ir *ir;
    gc_device device;
    gc_schedule schedule;
    int64_t chunk;    /* frames */
    int slots;        /* most chunks in flight */
    double predicted; /* seconds for the expected frames */
    double cost;      /* ranks the algorithms of this backend; 0: `predicted` ranks them */
    char reason[256], note[256];
};

/* Reads a caller's configuration of any version; does not check the ranges of its fields. @return ARGUMENT */
gpuconv_status gc_config_read(const gpuconv_config *from, gpuconv_config *config, gpuconv_error *error);

/* Adds a reference, which gpuconv_plan_free drops, and returns the plan. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

#endif
