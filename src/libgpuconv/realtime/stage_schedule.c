/*
 * The search for the schedule with the least load. The input block of a stage of hop P that begins 2 P taps into the
 * response is complete P frames before the first output that needs it, so a worker has P frames of time for it. A stage
 * that begins P taps in must be computed at once, in the callback, which is allowed only where a block takes little
 * time (Gardner, Efficient Convolution without Input-Output Delay, JAES 43(3), 1995; the cost is minimised over all
 * partitions as in Garcia, Optimal Filter Partition for Efficient Convolution with Short Input/Output Delay, AES 113,
 * 2002).
 */
#include "stage_schedule.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/processor.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/engine/components.h"
#include "libgpuconv/engine/costs.h"

#include <math.h>

typedef struct search {
    int64_t taps, zeros; /* length of the response; zeros at its beginning */
    double transforms;   /* FFTs of a block: one for each input and output */
    double routes;       /* spectrum products of a block and partition */
    double tap_seconds;  /* direct convolution: time of one tap of all routes */
    int64_t block;       /* frames of a call */
    bool dense;
    double callback_budget; /* seconds that the callback may spend on a block of a stage */
    gc_costs costs;
    gc_rt_schedule current, *best;
} search;

/* Fixed cost of a block: its start, its lists, cold caches. */
static const double block_seconds = 2e-6;

/* Cost of waking a worker, which happens up to twice a hop. */
static const double wakeup_seconds = 20e-6;

/* Share of the callback's time that one stage may take. */
static const double callback_share = 0.06;

/* Returns the seconds of one transform of a real block. */
static double transform_seconds(const search *s, int64_t points) {
    gc_cost cost = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                   : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                        : GC_COST_CPU_LEVEL_SMALL;
    return (double)points * log2((double)points) * s->costs.seconds[cost];
}

/* Returns the points of the block in which the head of a dense matrix is convolved, and its time in *seconds. */
static int64_t head_block(const search *s, int64_t head, double *seconds) {
    const int64_t points = gc_max(GC_FFT_MIN_POINTS, gc_power_of_two(head + gc_round_up(s->block, 32)));
    *seconds = s->transforms * transform_seconds(s, points) +
               s->routes * (double)points / 2 * s->costs.seconds[GC_COST_CPU_BIN] + block_seconds;
    return points;
}

/* Returns the load of the head in seconds per frame. */
static double head_cost(const search *s, int64_t head) {
    double direct = s->tap_seconds * (double)gc_max(0, head - s->zeros), block;
    if (!s->dense || direct <= 0)
        return direct;
    (void)head_block(s, head, &block);
    return fmin(direct, block / (double)s->block);
}

/* Chooses how the head is convolved. */
static void choose_head(const search *s, gc_rt_schedule *schedule) {
    const double direct = s->tap_seconds * (double)gc_max(0, schedule->head - s->zeros);
    double seconds;
    if (!s->dense || direct <= 0)
        return;
    const int64_t points = head_block(s, schedule->head, &seconds);
    const int64_t least = (int64_t)ceil(seconds / direct);
    if (least > s->block)
        return;
    schedule->head_points = points;
    schedule->head_frames = least;
}

/* Predicts the time of a block, decides whether the callback computes it, and returns the stage's load in seconds per
 * frame. */
static double stage_cost(const search *s, gc_rt_stage_plan *stage) {
    int64_t hop = stage->hop, partitions = stage->partitions, points = 2 * hop;
    double transform = transform_seconds(s, points);
    double products = s->routes * (double)partitions * (double)hop * s->costs.seconds[GC_COST_CPU_BIN];
    stage->seconds = s->transforms * transform + products + block_seconds;
    stage->in_callback = stage->seconds <= s->callback_budget;
    return (stage->seconds + (stage->in_callback ? 0 : wakeup_seconds)) / (double)hop;
}

static void extend(search *s, double cost);

/* Appends a stage of this hop to the current schedule, beginning one hop or two hops into the response, and searches on
 * from there. `cost` is the load of the head and of all stages but the last. */
static void try_stage(search *s, int64_t hop, double cost) {
    for (int64_t offset = hop; offset <= 2 * hop; offset += hop) {
        double prefix_cost = cost;
        if (s->current.stages == GC_RT_MAX_STAGES || offset >= s->taps)
            return;
        if (s->current.stages) {
            gc_rt_stage_plan *last = &s->current.stage[s->current.stages - 1];
            last->partitions = (offset - last->offset) / last->hop;
            if (last->partitions < 1)
                continue;
            prefix_cost += stage_cost(s, last);
            if (last->offset == last->hop && !last->in_callback)
                continue;
        } else {
            s->current.head = offset;
            prefix_cost += head_cost(s, offset);
        }
        s->current.stage[s->current.stages++] = (gc_rt_stage_plan){.hop = hop, .offset = offset};
        extend(s, prefix_cost);
        s->current.stages--;
    }
}

/* Completes the current schedule, whose last stage has a hop and an offset: once with that stage up to the end of the
 * response, and once with every longer stage behind it. */
static void extend(search *s, double cost) {
    gc_rt_stage_plan *last = &s->current.stage[s->current.stages - 1];
    last->partitions = gc_divide_up(s->taps - last->offset, last->hop);
    double load = cost + stage_cost(s, last);
    if (load < s->best->load && (last->in_callback || last->offset > last->hop)) {
        *s->best = s->current;
        s->best->load = load;
    }
    for (int64_t hop = 2 * last->hop; hop <= GC_RT_MAX_HOP; hop *= 2)
        try_stage(s, hop, cost);
}

/* Returns whether a response is dense enough that the matrix product needs less time than a sum for each output. Also
 * false without memory. */
static bool is_dense(const gpuconv_ir *ir) {
    gc_components components;
    int64_t products = gc_components_find(ir, &components) ? gc_components_products(&components) : INT64_MAX;
    gc_components_free(&components);
    return products >= 4 * gc_max(ir->inputs, ir->outputs) && products < 2 * (int64_t)ir->routes;
}

/* Returns the number of frames of silence at the beginning of the response. */
static int64_t leading_zeros(const gpuconv_ir *ir) {
    int64_t zeros = ir->frames;
    for (int p = 0; p < ir->planes; p++)
        for (int64_t i = 0; i < zeros; i++)
            if (gc_ir_plane(ir, p)[i] != 0)
                zeros = i;
    return zeros;
}

void gc_rt_schedule_make(const gpuconv_ir *ir, const gc_rt_calls *calls, gc_rt_schedule *schedule) {
    char name[128];
    gc_processor_name(name, sizeof name);
    search s = {.taps = ir->frames,
                .zeros = leading_zeros(ir),
                .transforms = ir->inputs + ir->outputs,
                .routes = ir->routes,
                .block = calls->block,
                .dense = is_dense(ir),
                .callback_budget = calls->share * callback_share * (double)calls->block / calls->rate,
                .costs = gc_costs_of_cpu(name),
                .best = schedule};
    s.tap_seconds = s.routes * s.costs.seconds[GC_COST_CPU_TAP];
    double direct_load = head_cost(&s, s.taps);
    *schedule = (gc_rt_schedule){.head = s.taps, .load = HUGE_VAL};
    int64_t shortest = gc_max(GC_RT_MIN_HOP, gc_power_of_two(calls->block));
    for (int64_t hop = shortest; hop <= GC_RT_MAX_HOP; hop *= 2)
        try_stage(&s, hop, 0);
    if (direct_load < schedule->load) /* a short response, or a block longer than every partition */
        *schedule = (gc_rt_schedule){.head = s.taps, .load = direct_load};
    schedule->zeros = s.zeros;
    schedule->dense = s.dense;
    choose_head(&s, schedule);
}
