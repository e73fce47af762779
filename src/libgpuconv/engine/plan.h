/* Holding a plan from inside the library. */
#ifndef GC_ENGINE_PLAN_H
#define GC_ENGINE_PLAN_H

#include "backend.h"

/* One more holder; give it back with gpuconv_plan_free. */
gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan);

#endif
