/* The planner: chooses algorithms and sizes. */
#ifndef GC_ENGINE_CHOOSE_H
#define GC_ENGINE_CHOOSE_H

#include "plan.h"

/* Chooses the sizes with the lowest cost of one algorithm. Fails with UNSUPPORTED, and a reason. */
gpuconv_status gc_algorithm_choose(const gc_algorithm *algorithm, const gc_problem *problem, const gc_device *device,
                                   const gc_costs *costs, gc_choice *choice, gpuconv_error *error);

/* Chooses among `algorithms`, which NULL ends, the one with the lowest cost. seconds: receives the predicted time of
 * each in turn, HUGE_VAL where it cannot convolve; or NULL. Fails with UNSUPPORTED, and the reason of the last one. */
gpuconv_status gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                    const gc_device *device, const gc_costs *costs, gc_choice *choice, double *seconds,
                                    gpuconv_error *error);

/* Fills backend, device, choice and reason of a plan: the algorithm that the configuration names, or the fastest one.
 * Fails with DEVICE, or with UNSUPPORTED and a reason if no algorithm of the backend can convolve. */
gpuconv_status gc_plan_choose(gpuconv_plan *plan, const struct gc_backend *backend, const gc_problem *problem,
                              const gpuconv_config *config, gpuconv_error *error);

#endif
