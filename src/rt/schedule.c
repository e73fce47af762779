/*
 * The search for the cheapest cut. A stage of hop P begins 2 P taps into the response: its input block is complete P
 * frames before the first output that needs it, so its work has P frames of time (Gardner, Efficient Convolution
 * without Input-Output Delay, JAES 43(3), 1995; cost minimised over all cuts as in Garcia, Optimal Filter Partition for
 * Efficient Convolution with Short Input/Output Delay, AES 113, 2002).
 */
#include "schedule.h"

#include "../core/memory.h"
#include "../core/processor.h"
#include "../engine/costs.h"

#include <math.h>

typedef struct search {
    int64_t taps;
    double transforms, routes; /* of a block: inputs and outputs; products */
    gc_costs costs;
    gc_rt_schedule now, *best;
} search;

/* A job's start, lists and cold caches. */
static const double job_seconds = 4e-6;

static double stage_cost(const search *s, int64_t hop, int64_t partitions) {
    int64_t points = 2 * hop;
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    double transform = (double)points * log2((double)points) * s->costs.seconds[level];
    double products = s->routes * (double)partitions * (double)hop * s->costs.seconds[GC_COST_CPU_BIN];
    return (s->transforms * transform + products + job_seconds) / (double)hop;
}

/* Everything from the last stage of `now` on, which has its hop and offset. */
static void extend(search *s, double cost) {
    if (cost >= s->best->load)
        return;
    gc_rt_stage_plan *last = &s->now.stage[s->now.stages - 1];
    int64_t left = s->taps - last->offset;
    last->partitions = (left + last->hop - 1) / last->hop;
    double whole = cost + stage_cost(s, last->hop, last->partitions);
    if (whole < s->best->load) {
        *s->best = s->now;
        s->best->load = whole;
    }
    if (s->now.stages == GC_RT_STAGES)
        return;
    for (int64_t hop = 2 * last->hop; hop <= GC_RT_HOP_MOST && 2 * hop < s->taps; hop *= 2) {
        last->partitions = (2 * hop - last->offset) / last->hop;
        s->now.stage[s->now.stages++] = (gc_rt_stage_plan){.hop = hop, .offset = 2 * hop};
        extend(s, cost + stage_cost(s, last->hop, last->partitions));
        s->now.stages--;
    }
}

void gc_rt_schedule_make(const gpuconv_ir *ir, int64_t block, gc_rt_schedule *schedule) {
    char name[128];
    gc_processor_name(name, sizeof name);
    search s = {.taps = ir->frames,
                .transforms = ir->inputs + ir->outputs,
                .routes = ir->routes,
                .costs = gc_costs_of_cpu(name),
                .best = schedule};
    double tap = s.routes * s.costs.seconds[GC_COST_CPU_TAP];
    *schedule = (gc_rt_schedule){.head = s.taps, .load = HUGE_VAL};
    int64_t least = gc_max(GC_RT_HOP_LEAST, gc_power_of_two(block));
    for (int64_t hop = least; hop <= GC_RT_HOP_MOST && 2 * hop < s.taps; hop *= 2) {
        s.now = (gc_rt_schedule){.head = 2 * hop, .stages = 1, .stage = {{.hop = hop, .offset = 2 * hop}}};
        extend(&s, tap * 2 * (double)hop);
    }
    if (tap * (double)s.taps < schedule->load) /* short responses, and blocks that no partition is as long as */
        *schedule = (gc_rt_schedule){.head = s.taps, .load = tap * (double)s.taps};
}
