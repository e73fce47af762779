/* The inside of a plan: the backend, the algorithm's schedule and the sizes that the engine works with. */
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
    int slots;        /* chunks in flight at most */
    double predicted; /* seconds for the expected frames */
    double compared;  /* what algorithms of this backend are compared by; 0: by predicted */
    char why[256], note[256];
};

/* Returns the plan with one more reference, to be given back with gpuconv_plan_free. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

#endif
