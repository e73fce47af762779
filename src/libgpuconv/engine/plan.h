/* The definition of gpuconv_plan: backend, algorithm, and the sizes that the engine uses. */
#ifndef GC_ENGINE_PLAN_H
#define GC_ENGINE_PLAN_H

#include "algorithm.h"

struct gpuconv_plan {
    _Atomic int references;
    const struct gc_backend *backend;
    gpuconv_ir *ir;
    gc_device device;
    gc_choice choice;
    char reason[256], note[256];
};

/* Reads a caller's configuration of any version; does not check the ranges of its fields. @return ARGUMENT */
gpuconv_status gc_config_read(const gpuconv_config *from, gpuconv_config *config, gpuconv_error *error);

/* Adds a reference, which gpuconv_plan_free drops, and returns the plan. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

#endif
