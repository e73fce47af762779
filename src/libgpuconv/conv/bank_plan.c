/*
 * Levels of growing partitions (Gardner, Efficient Convolution without Input-Output Delay, JAES 43(3), 1995): the
 * search for the cheapest cut of a response, and the levels of a bank on a GPU.
 *
 * On a GPU the first level has hops of a block. A further level with hops of H frames begins at tap H in a diagonal
 * bank, which computes a block of H outputs when its last input is there. In a matrix it begins at tap 2 H: the outputs
 * are computed one after another, during the H frames after that.
 */
#include "backend.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

bool gc_bank_is_diagonal(const gc_bank_options *o) {
    bool diagonal = o->routes == o->inputs && o->routes == o->outputs;
    for (int r = 0; r < o->routes && diagonal; r++)
        diagonal = o->route[r].input == r && o->route[r].output == r;
    return diagonal;
}

/* Costs the current levels with the last one up to the end of the response, then with every longer one behind it.
 * `seconds`: of all levels but the last. */
static void extend(const gc_level_search *s, gc_levels *levels, double seconds, gc_choice *best) {
    const int number = levels->count - 1;
    gc_level *last = &levels->level[number];
    last->partitions = gc_divide_up(s->taps - last->first_tap, last->hop);
    const double all = seconds + s->seconds(s->problem, s->costs, last, number);
    if (all < best->cost) {
        best->cost = all;
        best->levels = *levels;
    }
    for (int64_t hop = gc_max(2 * last->hop, s->shortest); 0 < hop && hop <= s->longest && levels->count < s->most;
         hop *= 2)
        for (int64_t first_tap = s->earliest * hop; first_tap <= s->latest * hop && first_tap < s->taps;
             first_tap += hop) {
            last->partitions = (first_tap - last->first_tap) / last->hop;
            const double before = seconds + s->seconds(s->problem, s->costs, last, number);
            if (last->partitions < 1 || before >= best->cost)
                continue;
            levels->level[levels->count++] = (gc_level){.hop = hop, .first_tap = first_tap};
            extend(s, levels, before, best);
            levels->count--;
        }
}

void gc_levels_search(const gc_level_search *search, int64_t first_hop, gc_choice *choice) {
    gc_levels levels = {.count = 1, .level = {{.hop = first_hop}}};
    choice->cost = HUGE_VAL;
    extend(search, &levels, 0, choice);
}

/* Cycles in which a thread waits for the memory before it can multiply by the next partition; in a matrix it reads four
 * ahead, and the channels of a diagonal bank are further apart. Measured on an H200: 2300 to 6500 and 320. */
enum { DIAGONAL_CYCLES = 4000, MATRIX_CYCLES = 320 };

/* A level reads the spectra of the responses of a block, and those of the inputs as often: 16 bytes for each frame and
 * route. The windows, spectra and results of each channel cross the memory as in a transform forward and one back. A
 * thread reads one partition after another, and each level is a launch in each period; the three of a matrix are
 * queued together and take little more. In a period of a diagonal bank a further level may have no channel whose block
 * ends. The bytes of the first level of a matrix count twice, because the results of a period wait for them. */
static double level_seconds(const gc_problem *p, const gc_costs *costs, gc_level *level, int number) {
    const gc_bank_options *o = p->bank.gpu;
    const double *t = costs->seconds, spectra = (double)o->routes * (double)level->partitions * 16;
    const double channels = p->bank.diagonal ? o->routes : o->inputs + o->outputs;
    const double used = p->bank.diagonal ? fmin(1, channels * o->block / (double)level->hop) : 1;
    const double waits = used * (p->bank.diagonal ? DIAGONAL_CYCLES : MATRIX_CYCLES) * (double)level->partitions;
    const double period = waits * t[GC_COST_CUDA_CYCLE] + t[GC_COST_CUDA_LAUNCH];
    return (p->bank.diagonal || number > 0 ? 1 : 2) *
               (spectra / 4 * t[GC_COST_CUDA_OUTPUT] + channels * 2 * t[GC_COST_CUDA_PASS]) +
           period / o->block;
}

static void cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    const int lead = p->bank.diagonal ? 1 : 2;
    const gc_level_search search = {.problem = p,
                                    .costs = costs,
                                    .seconds = level_seconds,
                                    .taps = p->bank.gpu->taps,
                                    .longest = p->bank.longest_hop,
                                    .earliest = lead,
                                    .latest = lead,
                                    .most = GC_LEVELS_MAX};
    gc_levels_search(&search, p->bank.gpu->block, c);
}

const gc_algorithm gc_bank_levels = {
    GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GC_BANK, 0, 0, 0, 0, NULL, cost, NULL, NULL};
