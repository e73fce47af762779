/*
 * The search for a plan: walks the algorithms of a backend and the sizes of each, and takes those with the lowest cost.
 * All sizes of an algorithm are costed before one is chosen, because some algorithms bound their memory by that of
 * their smallest size.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "plan.h"

#include <math.h>
#include <stdio.h>

bool gc_problem_init(gc_problem *p, const gpuconv_ir *ir, int64_t frames, int64_t latency) {
    *p = (gc_problem){
        .kind = GC_STREAM,
        .stream = {.ir = ir, .frames = frames, .chunk_most = latency > 0 ? latency / (GC_BOUNDED_SLOTS - 1) : 0}};
    if (!gc_components_find(ir, &p->stream.components))
        return false;
    p->stream.products = gc_components_products(&p->stream.components);
    return true;
}

void gc_problem_free(gc_problem *p) {
    if (p->kind == GC_STREAM)
        gc_components_free(&p->stream.components);
}

int64_t gc_problem_frames(const gc_problem *p, int64_t most) {
    return p->stream.frames < 0 ? most : gc_min(p->stream.frames, most);
}

enum { FORMS = 2, SIZES = 24 * FORMS };

/* Costs every size of an algorithm. Returns their number. */
static int cost_sizes(const gc_algorithm *a, const gc_problem *p, const gc_device *d, const gc_costs *costs,
                      gc_choice sizes[SIZES + 1]) {
    int count = 0;
    sizes[0] = (gc_choice){.algorithm = a};
    for (int64_t points = a->least; points <= a->most; points = points ? 2 * points : 1)
        for (int form = 0; form < FORMS; form++)
            if (a->fits ? a->fits(p, d, points, form, &sizes[count]) : form == 0) {
                a->cost(p, d, costs, &sizes[count++]);
                sizes[count] = (gc_choice){.algorithm = a};
            }
    return count;
}

/* Stores why no size of an algorithm fits: a reason of its own, or the length of the response. */
static gpuconv_status refuse(const gc_algorithm *a, const gc_problem *p, const gc_device *d, gpuconv_error *error) {
    char limit[64] = "";
    if (p->kind != GC_STREAM || (a->refuse && a->refuse(a, p, d, error)))
        return GPUCONV_ERROR_UNSUPPORTED;
    if (a->most)
        snprintf(limit, sizeof limit, ": transforms have at most %lld points", (long long)a->most);
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "a response of %lld frames is too long for %s on %s%s",
                   (long long)p->stream.ir->frames, a->name, d->name,
                   p->stream.chunk_most ? " within the latency asked for" : limit);
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
        return refuse(a, p, d, error);
    choice->bytes = least / GC_MEMORY_SHARE;
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%d inputs, %d outputs and %d responses of %lld frames need %.2f GB with %s; %s has %.2f GB%s",
                   p->stream.ir->inputs, p->stream.ir->outputs, p->stream.ir->routes, (long long)p->stream.ir->frames,
                   choice->bytes * 1e-9, a->name, d->name, d->memory * 1e-9, d->started ? " free" : "");
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
