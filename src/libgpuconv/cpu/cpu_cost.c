/*
 * The CPU's cost model: operations counted from the schedule, times what one takes (costs.h). Built-in figures are off
 * by a factor on another machine, yet rank the choices, since all scale alike.
 */
#include "cpu_cost.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The same input must give the same bytes whatever the number of threads, so algorithm and transform size are chosen
 * for a machine of NOMINAL_THREADS threads. The threads that are really there only change how long a chunk is, and no
 * sample depends on that.
 *
 * A pipe and a file with the same samples must give the same bytes too. Inputs of `long_input` frames and more, and
 * inputs of unknown length, are therefore all planned as if they had `long_input` frames: longer ones would gain 1.3 %
 * at most by the model.
 */
enum { NOMINAL_THREADS = 2 };
static const int64_t long_input = INT64_C(1) << 23;

/* Bytes beyond which a longer transform is not worth its speed, on NOMINAL_THREADS threads. */
static const double memory_enough = 72e6;

/* Bytes up to which a chunk grows so that more threads have work. */
static const double memory_most = 512e6;

/* A transform of a real block. Beyond the second-level cache every level of it costs more. */
static double transform_cost(const gc_costs *c, int64_t points) {
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    return (double)points * log2((double)points) * c->seconds[level];
}

/* Seconds if one thread did it all, transforms of the response included. */
static double cost(const gc_costs *c, const gpuconv_ir *ir, const gc_schedule *s, int64_t frames) {
    double total = (double)frames + (double)s->taps;
    double moves = total * (ir->inputs + ir->outputs) * c->seconds[GC_COST_CPU_SAMPLE];
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return total * (double)s->taps * ir->routes * c->seconds[GC_COST_CPU_TAP] + moves;
    double blocks = ceil(total / (double)s->hop), bins = (double)s->transform / 2 * (double)s->partitions;
    double each = transform_cost(c, s->transform);
    double block = (ir->inputs + ir->outputs) * each + ir->routes * bins * c->seconds[GC_COST_CPU_BIN];
    return blocks * block + moves + (double)(ir->planes * s->partitions) * each;
}

/* Returns the frames of a chunk: enough that hand-overs are rare and every thread has work, and no more, since most
 * memory goes into chunks. */
static int64_t chunk_of(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames, int threads) {
    int64_t most = gc_max(ir->inputs, ir->outputs), least = gc_min(ir->inputs, ir->outputs);
    int64_t total = frames + s->taps - 1, step = GC_DIRECT_SPAN, aim = gc_max(step, gc_min(262144, 524288 / most));
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        step = s->hop;
        aim = gc_max(aim, step * ((threads + least - 1) / least));
    } else if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        step = s->hop;
        aim = gc_max(aim, 16 * step);
    } else {
        aim = gc_max(aim, gc_min(s->taps, INT64_C(1) << 20));
    }
    return gc_max(step, gc_round_up(gc_min(aim, total), step));
}

/* Bytes of floats that a convolver and the chunks of its driver hold, more or less. */
static double memory_of(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk, int threads) {
    double channels = ir->inputs + ir->outputs, block = (double)s->transform;
    double busy = fmin(threads, (double)(chunk / s->hop) * gc_min(ir->inputs, ir->outputs));
    double spectra = ir->planes * (double)s->partitions * block, moving = (double)chunk * channels * 4;
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        spectra += ir->inputs * (double)s->partitions * block + channels * (double)chunk * 2;
    else
        spectra += busy * block * 2;
    return 4 * (spectra + moving + block / 2 + ir->inputs * (double)gc_schedule_history(s));
}

/* The size after n, 0 being before the first, and its schedule; 0: there are no more. gc_fft_backward gives whole
 * vectors, hence the hops that count. */
static int64_t next_size(gpuconv_algorithm algorithm, int64_t taps, int64_t n, gc_schedule *s) {
    if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        return n == 0 && gc_schedule_make(algorithm, taps, 1, s) ? 1 : 0;
    for (n = n ? 2 * n : GC_FFT_LEAST; n <= INT64_C(1) << 24; n *= 2)
        if (gc_schedule_make(algorithm, taps, n, s) && s->hop % 32 == 0)
            return n;
    return 0;
}

/* Returns the chunk for the threads that are there: as chunk_of, but no longer than memory_most allows. */
static int64_t chunk_for(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames, int threads) {
    int64_t least = gc_min(chunk_of(ir, s, frames, NOMINAL_THREADS), chunk_of(ir, s, frames, threads));
    int64_t chunk = chunk_of(ir, s, frames, threads);
    while (chunk - s->hop >= least && memory_of(ir, s, chunk, threads) > memory_most)
        chunk -= s->hop;
    return chunk;
}

/* Bytes that may be used: enough, or what the smallest size needs and half as much again. */
static double memory_limit(gpuconv_algorithm algorithm, const gpuconv_ir *ir, int64_t frames) {
    gc_schedule s;
    double least = HUGE_VAL;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;)
        least = fmin(least, memory_of(ir, &s, chunk_of(ir, &s, frames, NOMINAL_THREADS), NOMINAL_THREADS));
    return fmax(memory_enough, 1.5 * least);
}

gpuconv_status gc_cpu_plan_by(const gc_costs *costs, gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t frames,
                              gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t considered = frames < 0 ? long_input : gc_min(frames, long_input);
    double best = HUGE_VAL, limit = memory_limit(algorithm, ir, considered);
    gc_schedule s;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;) {
        double seconds = cost(costs, ir, &s, considered), needs;
        if (!(seconds < best))
            continue;
        needs = memory_of(ir, &s, chunk_of(ir, &s, considered, NOMINAL_THREADS), NOMINAL_THREADS);
        if (needs <= limit) {
            best = seconds;
            plan->schedule = s;
        }
    }
    if (!(best < HUGE_VAL))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "a response of %lld frames is too long for %s on the CPU",
                       (long long)ir->frames, gpuconv_algorithm_name(algorithm));
    plan->cost = best;
    plan->predicted = cost(costs, ir, &plan->schedule, frames < 0 ? long_input : frames) / plan->device.threads;
    plan->chunk = chunk_for(ir, &plan->schedule, frames < 0 ? INT64_MAX / 4096 : frames, plan->device.threads);
    return GPUCONV_OK;
}

gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error) {
    gc_costs costs = gc_costs_of_cpu(plan->device.name);
    return gc_cpu_plan_by(&costs, plan, algorithm, config->frames, error);
}
