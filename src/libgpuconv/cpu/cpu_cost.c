/*
 * The CPU's cost model: counts the operations of a schedule and multiplies them by their costs (costs.h). On another
 * machine the built-in costs are all wrong by a similar factor, so they still rank the choices.
 */
#include "cpu_cost.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The output bytes must not depend on the number of threads, so algorithm and transform size are chosen for
 * NOMINAL_THREADS threads. The real number of threads only changes the length of a chunk, on which no sample depends.
 *
 * A pipe and a file with the same samples must give the same bytes. Inputs of at least `long_input` frames, and inputs
 * of unknown length, are therefore all planned as if they had `long_input` frames. By the model, a plan for the true
 * length would be at most 1.3 % faster.
 */
enum { NOMINAL_THREADS = 2 };
static const int64_t long_input = INT64_C(1) << 23;

/* Longer transforms are not used if they need more bytes than this on NOMINAL_THREADS threads. */
static const double transform_memory = 72e6;

/* Chunks are not made longer for more threads beyond this number of bytes. */
static const double chunk_memory = 512e6;

double gc_cpu_fft_seconds(const gc_costs *c, int64_t points) {
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    return (double)points * log2((double)points) * c->seconds[level];
}

/* Returns the seconds on one thread, the transforms of the response included. */
static double job_seconds(const gc_costs *c, const gpuconv_ir *ir, const gc_schedule *s, int64_t frames) {
    double total = (double)frames + (double)s->taps;
    double copies = total * (ir->inputs + ir->outputs) * c->seconds[GC_COST_CPU_SAMPLE];
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return total * (double)s->taps * ir->routes * c->seconds[GC_COST_CPU_TAP] + copies;
    double blocks = ceil(total / (double)s->hop), bins = (double)s->transform / 2 * (double)s->partitions;
    double fft = gc_cpu_fft_seconds(c, s->transform);
    double block = (ir->inputs + ir->outputs) * fft + ir->routes * bins * c->seconds[GC_COST_CPU_BIN];
    return blocks * block + copies + (double)(ir->planes * s->partitions) * fft;
}

/* Returns the frames of a chunk: enough that every thread has work and switching chunks costs little, but not more,
 * because most memory is used for chunks. */
static int64_t chunk_frames(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames, int threads) {
    int64_t most = gc_max(ir->inputs, ir->outputs), least = gc_min(ir->inputs, ir->outputs);
    int64_t total = frames + s->taps - 1, step = GC_DIRECT_SPAN, target = gc_max(step, gc_min(262144, 524288 / most));
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        step = s->hop;
        target = gc_max(target, step * ((threads + least - 1) / least));
    } else if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        step = s->hop;
        target = gc_max(target, 16 * step);
    } else {
        target = gc_max(target, gc_min(s->taps, INT64_C(1) << 20));
    }
    return gc_max(step, gc_round_up(gc_min(target, total), step));
}

/* Returns the approximate bytes of a convolver and of its stream's chunks. */
static double memory_bytes(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk, int threads) {
    double channels = ir->inputs + ir->outputs, block = (double)s->transform;
    int64_t jobs = chunk / s->hop * gc_min(ir->inputs, ir->outputs);
    double workers = fmin(threads, (double)jobs);
    double spectra = ir->planes * (double)s->partitions * block, chunks = (double)chunk * channels * 4;
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        spectra += ir->inputs * (double)s->partitions * block + channels * (double)chunk * 2;
    else
        spectra += workers * block * 2;
    return 4 * (spectra + chunks + block / 2 + ir->inputs * (double)gc_schedule_history(s));
}

/* Returns the next transform size after n (n = 0: the first) and fills its schedule; returns 0 after the last. Only
 * hops that are multiples of 32 count, because gc_fft_inverse writes whole vectors. Direct has one pseudo size, 1. */
static int64_t next_size(gpuconv_algorithm algorithm, int64_t taps, int64_t n, gc_schedule *s) {
    if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        return n == 0 && gc_schedule_make(algorithm, taps, 1, s) ? 1 : 0;
    for (n = n ? 2 * n : GC_FFT_MIN_POINTS; n <= INT64_C(1) << 24; n *= 2)
        if (gc_schedule_make(algorithm, taps, n, s) && s->hop % 32 == 0)
            return n;
    return 0;
}

/* Returns chunk_frames for the real number of threads, shortened to what chunk_memory allows. */
static int64_t limited_chunk_frames(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames, int threads) {
    int64_t least = gc_min(chunk_frames(ir, s, frames, NOMINAL_THREADS), chunk_frames(ir, s, frames, threads));
    int64_t chunk = chunk_frames(ir, s, frames, threads);
    while (chunk - s->hop >= least && memory_bytes(ir, s, chunk, threads) > chunk_memory)
        chunk -= s->hop;
    return chunk;
}

/* Returns the bytes that a transform size may use: transform_memory, or 1.5 times the least of all sizes if that is
 * more. */
static double memory_limit(gpuconv_algorithm algorithm, const gpuconv_ir *ir, int64_t frames) {
    gc_schedule s;
    double least = HUGE_VAL;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;)
        least = fmin(least, memory_bytes(ir, &s, chunk_frames(ir, &s, frames, NOMINAL_THREADS), NOMINAL_THREADS));
    return fmax(transform_memory, 1.5 * least);
}

gpuconv_status gc_cpu_plan_by(const gc_costs *costs, gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t frames,
                              gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t planned = frames < 0 ? long_input : gc_min(frames, long_input);
    double best = HUGE_VAL, limit = memory_limit(algorithm, ir, planned);
    gc_schedule s;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;) {
        double seconds = job_seconds(costs, ir, &s, planned), bytes;
        if (!(seconds < best))
            continue;
        bytes = memory_bytes(ir, &s, chunk_frames(ir, &s, planned, NOMINAL_THREADS), NOMINAL_THREADS);
        if (bytes <= limit) {
            best = seconds;
            plan->schedule = s;
        }
    }
    if (!(best < HUGE_VAL))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "a response of %lld frames is too long for %s on the CPU",
                       (long long)ir->frames, gpuconv_algorithm_name(algorithm));
    plan->cost = best;
    plan->predicted = job_seconds(costs, ir, &plan->schedule, frames < 0 ? long_input : frames) / plan->device.threads;
    plan->chunk =
        limited_chunk_frames(ir, &plan->schedule, frames < 0 ? INT64_MAX / 4096 : frames, plan->device.threads);
    return GPUCONV_OK;
}

gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error) {
    gc_costs costs = gc_costs_of_cpu(plan->device.name);
    return gc_cpu_plan_by(&costs, plan, algorithm, config->frames, error);
}
