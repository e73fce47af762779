/*
 * The planner: walks the algorithms of a backend and the sizes of each, and takes those with the lowest cost.
 *
 * All sizes of an algorithm are costed before one is chosen, because some algorithms bound their memory by that of
 * their smallest size.
 */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <string.h>

enum { FORMS = 2, SIZES = 24 * FORMS };

/* Costs every size of an algorithm. Returns their number. */
static int cost_sizes(const gc_algorithm *a, const gc_problem *p, const gc_device *d, const gc_costs *costs,
                      gc_choice sizes[SIZES + 1]) {
    int count = 0;
    sizes[0] = (gc_choice){.algorithm = a};
    for (int64_t points = a->least; points <= a->most; points = points ? 2 * points : 1)
        for (int form = 0; form < FORMS; form++)
            if (a->fits(p, d, points, form, &sizes[count])) {
                a->cost(p, d, costs, &sizes[count++]);
                sizes[count] = (gc_choice){.algorithm = a};
            }
    return count;
}

/* Chooses the sizes of one algorithm with the lowest cost. Fails with UNSUPPORTED, and a reason; choice->bytes is then
 * the memory that the smallest size needs, 0 if memory is not the reason. */
static gpuconv_status choose_size(const gc_algorithm *a, const gc_problem *p, const gc_device *d, const gc_costs *costs,
                                  gc_choice *choice, gpuconv_error *error) {
    gc_choice sizes[SIZES + 1];
    const int count = cost_sizes(a, p, d, costs, sizes);
    double least = HUGE_VAL;
    for (int i = 0; i < count; i++)
        least = fmin(least, sizes[i].bytes);
    const double most = a->thrift > 0 ? fmax(a->thrift, a->excess * least) : GC_MEMORY_SHARE * d->memory;
    const gc_choice *best = NULL;
    for (int i = 0; i < count; i++)
        if (sizes[i].bytes <= most && sizes[i].cost < (best ? best->cost : HUGE_VAL))
            best = &sizes[i];
    if (best) {
        *choice = *best;
        choice->predicted = choice->cost;
        if (a->settle)
            a->settle(p, d, costs, choice);
        return GPUCONV_OK;
    }
    *choice = (gc_choice){.cost = HUGE_VAL};
    if (count == 0 || least <= most)
        return a->refuse ? a->refuse(a, p, d, error) : GPUCONV_ERROR_UNSUPPORTED;
    choice->bytes = least / GC_MEMORY_SHARE;
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%d inputs, %d outputs and %d responses of %lld frames need %.2f GB with %s; %s has %.2f GB%s",
                   p->ir->inputs, p->ir->outputs, p->ir->routes, (long long)p->ir->frames, choice->bytes * 1e-9,
                   a->name, d->name, d->memory * 1e-9, d->started ? " free" : "");
}

gpuconv_status gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *p, const gc_device *d,
                                    const gc_costs *costs, gc_choice *choice, double *seconds, gpuconv_error *error) {
    gpuconv_error reason = {0};
    double least = HUGE_VAL;
    *choice = (gc_choice){.cost = HUGE_VAL};
    for (int i = 0; algorithms[i]; i++) {
        gc_choice c;
        gpuconv_error refused;
        if (seconds)
            seconds[i] = HUGE_VAL;
        if (algorithms[i]->kind != p->kind)
            continue;
        *refused.message = '\0';
        const bool can = choose_size(algorithms[i], p, d, costs, &c, &refused) == GPUCONV_OK;
        if (seconds && can)
            seconds[i] = c.predicted;
        if (can && c.cost < choice->cost)
            *choice = c;
        if (!can && (c.bytes > 0 ? c.bytes < least : !(least < HUGE_VAL)))
            reason = refused;
        if (!can && c.bytes > 0)
            least = fmin(least, c.bytes);
    }
    return choice->algorithm ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s", reason.message);
}

/* Writes the reason of a choice: its time, the times of the other algorithms, and from 4 channels on the density of the
 * matrix, on which a choice of dense matrices rests. */
static void write_reason(gpuconv_plan *plan, const gc_problem *p, const gc_costs *costs, const double *seconds) {
    const gc_algorithm *const *row = plan->backend->algorithms;
    const char *joint = ", against";
    gc_format(plan->reason, sizeof plan->reason, "%.3g s predicted%s", plan->choice.predicted,
              *costs->cpu || *costs->cuda ? " by the calibration" : "");
    for (int i = 0; row[i]; i++)
        if (row[i] != plan->choice.algorithm && seconds[i] < HUGE_VAL) {
            const size_t used = strlen(plan->reason);
            gc_format(plan->reason + used, sizeof plan->reason - used, "%s %.3g s for %s", joint, seconds[i],
                      row[i]->name);
            joint = " and";
        }
    const size_t used = strlen(plan->reason);
    if (p->products >= 2 * (int64_t)(p->ir->inputs + p->ir->outputs))
        gc_format(plan->reason + used, sizeof plan->reason - used, "; %d routes of %lld, density %.0f %%",
                  p->ir->routes, (long long)p->products, 100.0 * p->ir->routes / (double)p->products);
}

gpuconv_status gc_plan_choose(gpuconv_plan *plan, const gc_backend *backend, const gc_problem *p,
                              const gpuconv_config *config, gpuconv_error *error) {
    const gc_algorithm *only[] = {NULL, NULL}, *const *row = backend->algorithms;
    double seconds[GC_ROWS_MAX] = {0};
    plan->backend = backend;
    const gc_costs costs = backend->costs(&plan->device);
    for (; config->algorithm && *row && !*only; row++)
        if ((*row)->kind == p->kind && (*row)->id == config->algorithm)
            *only = *row;
    if (config->algorithm && !*only)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s has no algorithm %s", gpuconv_backend_name(backend->id),
                       gpuconv_algorithm_name(config->algorithm));
    const gpuconv_status status = gc_algorithms_choose(*only ? only : backend->algorithms, p, &plan->device, &costs,
                                                       &plan->choice, seconds, error);
    if (*only)
        snprintf(plan->reason, sizeof plan->reason, "%s was requested", (*only)->name);
    else if (!status)
        write_reason(plan, p, &costs, seconds);
    return status;
}
