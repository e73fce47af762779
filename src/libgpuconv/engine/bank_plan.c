/*
 * The plan of a bank: levels of growing partitions (Gardner, Efficient Convolution without Input-Output Delay, JAES
 * 43(3), 1995). The first level has hops of a block. A further level with hops of H frames begins at tap H in a
 * diagonal bank, which computes a block of H outputs when its last input is there. In a matrix it begins at tap 2 H:
 * the outputs are computed one after another, during the H frames after that.
 */
#include "bank.h"

#include <math.h>

bool gc_bank_is_diagonal(const gc_bank_options *o) {
    bool diagonal = o->routes == o->inputs && o->routes == o->outputs;
    for (int r = 0; r < o->routes && diagonal; r++)
        diagonal = o->route[r].input == r && o->route[r].output == r;
    return diagonal;
}

/* Returns the bytes that a period moves for a level: the spectra of the responses of a block, those of the inputs as
 * often, and the windows, spectra and results, counted three times to account for the time of the transforms. A period
 * of a matrix waits for three launches of the first level, which counts twice. */
static double level_cost(const gc_bank_options *o, const gc_bank_plan *plan, int number) {
    const double spectra = 16.0 * o->routes * plan->level[number].partitions;
    const double transforms = 60.0 * (plan->diagonal ? o->routes : o->inputs + o->outputs);
    return (plan->diagonal || number > 0 ? 1 : 2) * (spectra + transforms) * o->block;
}

/* Tries all cuts that begin with the levels of `plan` and stores the cheapest in *best. cost: of all levels of `plan`
 * but the last. */
static void search(const gc_bank_options *o, int64_t longest_hop, gc_bank_plan plan, double cost, gc_bank_plan *best,
                   double *least) {
    const int number = plan.levels - 1;
    gc_bank_level *last = &plan.level[number];
    last->partitions = (int)((o->taps - last->first_tap + last->hop - 1) / last->hop);
    const double total = cost + level_cost(o, &plan, number);
    if (total < *least) {
        *least = total;
        *best = plan;
    }
    if (plan.levels == GC_BANK_LEVELS_MAX)
        return;
    for (int64_t hop = 2 * last->hop; hop <= longest_hop; hop *= 2) {
        gc_bank_plan next = plan;
        const int64_t first_tap = plan.diagonal ? hop : 2 * hop;
        if (first_tap >= o->taps)
            return;
        next.level[number].partitions = (int)((first_tap - last->first_tap) / last->hop);
        next.level[next.levels++] = (gc_bank_level){.hop = hop, .first_tap = first_tap};
        search(o, longest_hop, next, cost + level_cost(o, &next, number), best, least);
    }
}

gc_bank_plan gc_bank_make_plan(const gc_bank_options *o, int64_t longest_hop) {
    const gc_bank_plan start = {.diagonal = gc_bank_is_diagonal(o), .levels = 1, .level = {{.hop = o->block}}};
    gc_bank_plan best = start;
    double least = HUGE_VAL;
    search(o, longest_hop, start, 0, &best, &least);
    return best;
}
