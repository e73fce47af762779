/*
 * The search for the cheapest cut. A stage of hop P that begins 2 P taps into the response has its input block complete
 * P frames before the first output that needs it, so its work has P frames of time; one that begins P taps in has to be
 * done at once, by the callback, and is allowed to where that is little (Gardner, Efficient Convolution
 * without Input-Output Delay, JAES 43(3), 1995; cost minimised over all cuts as in Garcia, Optimal Filter Partition for
 * Efficient Convolution with Short Input/Output Delay, AES 113, 2002).
 */
#include "stage_schedule.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/engine/costs.h"

#include <math.h>

typedef struct search {
    int64_t taps, zeros;       /* the first so many are none */
    double transforms, routes; /* of a block: inputs and outputs; products */
    double tap;                /* seconds of a tap of all routes */
    double little;             /* seconds that the callback may spend on a stage's block */
    gc_costs costs;
    gc_rt_schedule now, *best;
} search;

/* A job's start, lists and cold caches; a worker's waking, twice a hop. */
static const double job_seconds = 2e-6, waking_seconds = 20e-6;

static const double share_of_block = 0.06;

/* Of one frame; fills in what the stage says of itself. */
static double stage_cost(const search *s, gc_rt_stage_plan *stage) {
    int64_t hop = stage->hop, partitions = stage->partitions, points = 2 * hop;
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    double transform = (double)points * log2((double)points) * s->costs.seconds[level];
    double products = s->routes * (double)partitions * (double)hop * s->costs.seconds[GC_COST_CPU_BIN];
    stage->seconds = s->transforms * transform + products + job_seconds;
    stage->here = stage->seconds <= s->little;
    return (stage->seconds + (stage->here ? 0 : waking_seconds)) / (double)hop;
}

static void extend(search *s, double cost);

/* A stage of this hop behind what `now` has, beginning at one hop or at two. */
static void try_stage(search *s, int64_t hop, double cost) {
    for (int times = 1; times <= 2; times++) {
        int64_t offset = times * hop;
        double so_far = cost;
        if (s->now.stages == GC_RT_STAGES || offset >= s->taps)
            return;
        if (s->now.stages) {
            gc_rt_stage_plan *last = &s->now.stage[s->now.stages - 1];
            last->partitions = (offset - last->offset) / last->hop;
            if (last->partitions < 1)
                continue;
            so_far += stage_cost(s, last);
            if (last->offset == last->hop && !last->here)
                continue;
        } else {
            s->now.head = offset;
            so_far += s->tap * (double)gc_max(0, offset - s->zeros);
        }
        s->now.stage[s->now.stages++] = (gc_rt_stage_plan){.hop = hop, .offset = offset};
        extend(s, so_far);
        s->now.stages--;
    }
}

/* Everything from the last stage of `now` on, which has its hop and offset. */
static void extend(search *s, double cost) {
    gc_rt_stage_plan *last = &s->now.stage[s->now.stages - 1];
    last->partitions = (s->taps - last->offset + last->hop - 1) / last->hop;
    double whole = cost + stage_cost(s, last);
    if (whole < s->best->load && (last->here || last->offset > last->hop)) {
        *s->best = s->now;
        s->best->load = whole;
    }
    for (int64_t hop = 2 * last->hop; hop <= GC_RT_HOP_MOST; hop *= 2)
        try_stage(s, hop, cost);
}

int64_t gc_rt_zeros(const gpuconv_ir *ir) {
    int64_t zeros = ir->frames;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < zeros; i++)
            if (gc_ir_plane(ir, p)[i] != 0)
                zeros = i;
    return zeros;
}

void gc_rt_schedule_make(const gpuconv_ir *ir, int64_t block, double rate, gc_rt_schedule *schedule) {
    char name[128];
    gc_processor_name(name, sizeof name);
    search s = {.taps = ir->frames,
                .zeros = gc_rt_zeros(ir),
                .transforms = ir->inputs + ir->outputs,
                .routes = ir->routes,
                .little = share_of_block * (double)block / rate,
                .costs = gc_costs_of_cpu(name),
                .best = schedule};
    double tap = s.tap = s.routes * s.costs.seconds[GC_COST_CPU_TAP];
    double whole = tap * (double)gc_max(0, s.taps - s.zeros);
    *schedule = (gc_rt_schedule){.head = s.taps, .load = HUGE_VAL};
    int64_t least = gc_max(GC_RT_HOP_LEAST, gc_power_of_two(block));
    for (int64_t hop = least; hop <= GC_RT_HOP_MOST; hop *= 2)
        try_stage(&s, hop, 0);
    if (whole < schedule->load) /* short responses, and blocks that no partition is as long as */
        *schedule = (gc_rt_schedule){.head = s.taps, .load = whole};
}
