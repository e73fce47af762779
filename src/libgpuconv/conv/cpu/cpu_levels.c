/*
 * The levels of a response that is convolved on the CPU in real time, without added latency. The first level is the
 * head: partitions of one tap, convolved directly. The input block of a level of hop H that begins 2 H taps into the
 * response is complete H frames before the first output that needs it, so a worker has H frames of time for it. A level
 * that begins H taps in must be computed at once, in the callback, which is allowed only where a block takes little
 * time. The cost is minimised over all cuts as in Garcia, Optimal Filter Partition for Efficient Convolution with Short
 * Input/Output Delay, AES 113, 2002.
 */
#include "cpu_algorithm.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <math.h>

enum { MIN_HOP = 256, MAX_HOP = 1 << 16 };

/* Returns whether the matrix product needs less time than a sum for each output. */
static bool is_dense(const gc_problem *p) {
    return p->bank.products >= 4 * gc_max(p->bank.ir->inputs, p->bank.ir->outputs) &&
           p->bank.products < 2 * (int64_t)p->bank.ir->routes;
}

/* Returns the time of a block with `products` products of bins of all routes. */
static double block_cost(const gc_problem *p, const gc_costs *costs, int64_t points, double products) {
    return (p->bank.ir->inputs + p->bank.ir->outputs) * gc_cpu_fft_seconds(costs, points) +
           p->bank.ir->routes * products * costs->seconds[GC_COST_CPU_BIN] + gc_cpu_block_seconds;
}

/* Returns the time of the head for a call of one frame, computed directly. */
static double direct_seconds(const gc_problem *p, const gc_costs *costs, int64_t head) {
    return p->bank.ir->routes * costs->seconds[GC_COST_CPU_TAP] * (double)gc_max(0, head - p->bank.zeros);
}

/* Returns the points of the transform that convolves the head of a dense matrix for any call, and its time in *seconds.
 */
static int64_t head_points(const gc_problem *p, const gc_costs *costs, int64_t head, double *seconds) {
    const int64_t points = gc_max(GC_FFT_MIN_POINTS, gc_power_of_two(head + gc_round_up(p->bank.block, 32)));
    *seconds = block_cost(p, costs, points, (double)points / 2);
    return points;
}

/* Returns the cost of a level per frame, and sets whether the callback computes it. */
static double level_seconds(const gc_problem *p, const gc_costs *costs, gc_level *l, int number) {
    double seconds;
    if (number == 0) {
        const double direct = direct_seconds(p, costs, l->partitions);
        if (!is_dense(p) || direct <= 0)
            return direct;
        (void)head_points(p, costs, l->partitions, &seconds);
        return fmin(direct, seconds / (double)p->bank.block);
    }
    seconds = block_cost(p, costs, 2 * l->hop, (double)l->partitions * (double)l->hop);
    l->at_once = seconds <= p->bank.deadline;
    if (l->first_tap == l->hop && !l->at_once)
        return HUGE_VAL;
    return (seconds + (l->at_once ? 0 : gc_cpu_wake_seconds)) / (double)l->hop;
}

/* Chooses how the head is convolved: in blocks for calls of at least choice->chunk frames, where that is faster. */
static void choose_head(const gc_problem *p, const gc_costs *costs, gc_choice *c) {
    const int64_t head = c->levels.level[0].partitions;
    const double direct = direct_seconds(p, costs, head);
    double seconds;
    if (!is_dense(p) || direct <= 0)
        return;
    const int64_t points = head_points(p, costs, head, &seconds), least = (int64_t)ceil(seconds / direct);
    if (least > p->bank.block)
        return;
    c->schedule = (gc_schedule){head, points, points - gc_round_up(head, 32), head, 1};
    c->chunk = least;
}

static void cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device;
    const gc_level_search search = {.problem = p,
                                    .costs = costs,
                                    .seconds = level_seconds,
                                    .taps = p->bank.ir->frames,
                                    .shortest = gc_max(MIN_HOP, gc_power_of_two(p->bank.block)),
                                    .longest = MAX_HOP,
                                    .earliest = 1,
                                    .latest = 2,
                                    .most = GC_CPU_LEVELS_MAX};
    gc_levels_search(&search, 1, c);
    c->levels.dense = is_dense(p);
    choose_head(p, costs, c);
}

const gc_algorithm gc_cpu_levels = {
    GPUCONV_ALGORITHM_PARTITIONED, "partitioned", GC_BANK, 0, 0, 0, 0, NULL, cost, NULL, NULL};
