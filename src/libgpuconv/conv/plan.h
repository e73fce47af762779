/* The definition of gpuconv_plan (plan.c), and the planner that fills it (choose.c). */
#ifndef GC_CONV_PLAN_H
#define GC_CONV_PLAN_H

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

/* ---- The planner ------------------------------------------------------------------------------------------------- */

/* Chooses among `algorithms`, which NULL ends, the one of the problem's kind with the lowest cost. seconds: receives
 * the predicted time of each in turn, HUGE_VAL where it cannot convolve; or NULL. Fails with UNSUPPORTED, and the
 * reason of the algorithm that needs the least memory, or of the last one if memory is no reason. */
gpuconv_status gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                    const gc_device *device, const gc_costs *costs, gc_choice *choice, double *seconds,
                                    gpuconv_error *error);

/* Fills backend, choice and reason of a plan whose device is set: the algorithm that the configuration names, or the
 * fastest one. Fails with UNSUPPORTED, and a reason, if no algorithm of the backend can convolve. */
gpuconv_status gc_plan_choose(gpuconv_plan *plan, const struct gc_backend *backend, const gc_problem *problem,
                              const gpuconv_config *config, gpuconv_error *error);

#endif
