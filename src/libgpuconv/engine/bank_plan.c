/*
 * The plan of a bank: levels of growing partitions (Gardner, Efficient Convolution without Input-Output Delay, JAES
 * 43(3), 1995). The first level has hops of a block. A further level with hops of H frames begins at tap H in a
 * diagonal bank, which computes a block of H outputs when its last input is there. In a matrix it begins at tap 2 H:
 * the outputs are computed one after another, during the H frames after that.
 */
#include "bank.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

bool gc_bank_is_diagonal(const gc_bank_options *o) {
    bool diagonal = o->routes == o->inputs && o->routes == o->outputs;
    for (int r = 0; r < o->routes && diagonal; r++)
        diagonal = o->route[r].input == r && o->route[r].output == r;
    return diagonal;
}

/* Returns the seconds of a level in each period. It reads the spectra of the responses of a block, and those of the
 * inputs as often: 16 bytes for each frame and route. The windows, spectra and results of each channel cross the memory
 * as in a transform forward and one back. A period of a matrix waits for three launches of the first level, which
 * counts twice. */
static double level_seconds(const gc_problem *p, const gc_costs *costs, const gc_levels *l, int number) {
    const gc_bank_options *o = p->bank;
    const double *t = costs->seconds, spectra = (double)o->routes * l->level[number].partitions * 16;
    const double channels = p->diagonal ? o->routes : o->inputs + o->outputs;
    return (p->diagonal || number > 0 ? 1 : 2) * o->block *
           (spectra / 4 * t[GC_COST_CUDA_OUTPUT] + channels * 2 * t[GC_COST_CUDA_PASS]);
}

/* Tries all cuts that begin with the given levels and end with hops of `hop` frames, and stores the cheapest in *best.
 * seconds: of all given levels but the last. */
static void search(const gc_problem *p, const gc_costs *costs, gc_levels levels, double seconds, gc_choice *best) {
    const int number = levels.count - 1;
    gc_level *last = &levels.level[number];
    if (last->hop == best->schedule.hop) {
        last->partitions = (int)gc_divide_up(p->bank->taps - last->first_tap, last->hop);
        seconds += level_seconds(p, costs, &levels, number);
        if (seconds < best->cost) {
            best->cost = seconds;
            best->levels = levels;
        }
        return;
    }
    for (int64_t hop = 2 * last->hop; hop <= best->schedule.hop && levels.count < GC_LEVELS_MAX; hop *= 2) {
        gc_levels next = levels;
        const int64_t first_tap = p->diagonal ? hop : 2 * hop;
        next.level[number].partitions = (int)((first_tap - last->first_tap) / last->hop);
        next.level[next.count++] = (gc_level){.hop = hop, .first_tap = first_tap};
        search(p, costs, next, seconds + level_seconds(p, costs, &next, number), best);
    }
}

/* A size is the hop of the last level, half of the points of its transforms. */
static bool fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    const int64_t hop = points / 2;
    c->schedule = (gc_schedule){.taps = p->bank->taps, .transform = points, .hop = hop};
    return form == 0 && (hop == p->bank->block || (hop > p->bank->block && hop <= p->longest_hop &&
                                                   (p->diagonal ? hop : 2 * hop) < p->bank->taps));
}

static void cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    c->cost = HUGE_VAL;
    search(p, costs, (gc_levels){.count = 1, .level = {{.hop = p->bank->block}}}, 0, c);
}

const gc_algorithm gc_bank_levels = {
    GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GC_BANK, 2, 1 << 24, 0, 0, fits, cost, NULL, NULL};
