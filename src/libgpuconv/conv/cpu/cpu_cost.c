/*
 * The CPU's cost model: each algorithm counts its operations and multiplies them by their costs (conv/plan.h). This
 * file has what the algorithms share: chunks, memory, and threads. On another machine the built-in costs are all wrong
 * by a similar factor, so they still rank the choices.
 */
#include "cpu_algorithm.h"

#include "libgpuconv/core/memory.h"

#include <math.h>

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

/* Chunks are not made longer for more threads beyond this number of bytes. */
static const double chunk_memory = 512e6;

double gc_cpu_fft_seconds(const gc_costs *c, int64_t points) {
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    return (double)points * log2((double)points) * c->seconds[level];
}

/* A product whose factors are read from memory takes as long as reading about 14 bytes in a row. */
double gc_cpu_product_seconds(const gc_problem *p, const gc_costs *c, const gc_schedule *s, double streamed) {
    const double bins = (double)s->transform / 2 * (double)s->partitions;
    const double bin = c->seconds[GC_COST_CPU_BIN], from_memory = fmax(bin, 14 * c->seconds[GC_COST_CPU_BYTE]);
    return p->stream.ir->routes * bins * (bin + streamed * (from_memory - bin));
}

double gc_cpu_copy_seconds(const gc_problem *p, const gc_costs *c, double total) {
    return total * (p->stream.ir->inputs + p->stream.ir->outputs) * c->seconds[GC_COST_CPU_SAMPLE];
}

/* gc_fft_inverse writes whole vectors. */
bool gc_cpu_fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    (void)device;
    gc_schedule *s = &c->schedule;
    return form == 0 && gc_cpu_algorithm_of(c)->schedule(p->stream.ir->frames, points, s) &&
           (points == 0 || s->hop % 32 == 0);
}

/* Returns the frames of a chunk: enough that every thread has work and switching chunks costs little, but not more,
 * because most memory is used for chunks. At most what the latency allows, if one step is not longer. */
static int64_t chunk_frames(const gc_problem *p, const gc_choice *c, int64_t frames, int threads) {
    const gc_schedule *s = &c->schedule;
    const int64_t step = s->transform ? s->hop : GC_DIRECT_SPAN,
                  most = p->stream.chunk_most ? p->stream.chunk_most : INT64_MAX;
    const int64_t shared = 524288 / gc_max(p->stream.ir->inputs, p->stream.ir->outputs), total = frames + s->taps - 1;
    const int64_t target =
        gc_max(gc_max(GC_DIRECT_SPAN, gc_min(262144, shared)), gc_cpu_algorithm_of(c)->chunk(p, s, threads));
    return gc_max(step, gc_min(gc_round_up(gc_min(target, total), step), most - most % step));
}

/* Returns the seconds on one thread. */
static double job_seconds(const gc_problem *p, const gc_costs *costs, const gc_choice *c, int64_t frames) {
    return gc_cpu_algorithm_of(c)->seconds(p, costs, &c->schedule, (double)frames + (double)c->schedule.taps,
                                           chunk_frames(p, c, frames, NOMINAL_THREADS));
}

/* Returns the approximate bytes of a convolver and of its stream's chunks. */
static double memory_bytes(const gc_problem *p, const gc_choice *c, int64_t chunk, int threads) {
    const double chunks =
        (double)chunk * (p->stream.ir->inputs + p->stream.ir->outputs) * 4; /* planar, and three in the slots */
    return 4 * (gc_cpu_algorithm_of(c)->floats(p, &c->schedule, chunk, threads) + chunks +
                (double)c->schedule.transform / 2);
}

/* Returns chunk_frames for the real number of threads, shortened to what chunk_memory allows. */
static int64_t limited_chunk_frames(const gc_problem *p, const gc_choice *c, int64_t frames, int threads) {
    int64_t chunk = chunk_frames(p, c, frames, threads);
    const int64_t least = gc_min(chunk_frames(p, c, frames, NOMINAL_THREADS), chunk);
    while (chunk - c->schedule.hop >= least && memory_bytes(p, c, chunk, threads) > chunk_memory)
        chunk -= c->schedule.hop;
    return chunk;
}

/* Returns the seconds in which the system provides and clears memory that is used for the first time. The first
 * megabyte is free: the allocator has it, and the difference between short jobs is in their arithmetic. */
static double touch_seconds(const gc_costs *c, double bytes) {
    return 2 * c->seconds[GC_COST_CPU_BYTE] * fmax(0, bytes - 1e6);
}

void gc_cpu_cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    (void)device; /* the threads do not count */
    const int64_t frames = gc_problem_frames(p, long_input);
    c->chunk = chunk_frames(p, c, frames, NOMINAL_THREADS);
    c->bytes = memory_bytes(p, c, c->chunk, NOMINAL_THREADS);
    const bool late = p->stream.chunk_most && c->chunk > p->stream.chunk_most;
    c->cost = late ? HUGE_VAL : job_seconds(p, costs, c, frames) + touch_seconds(costs, c->bytes);
}

/* A job that fits into one chunk has nothing to overlap with and takes two slots. */
void gc_cpu_settle(const gc_problem *p, const gc_device *d, const gc_costs *costs, gc_choice *c) {
    const int64_t expected = p->stream.frames < 0 ? long_input : p->stream.frames;
    c->chunk = limited_chunk_frames(p, c, p->stream.frames < 0 ? INT64_MAX / 4096 : p->stream.frames, d->threads);
    c->bytes = memory_bytes(p, c, c->chunk, d->threads);
    c->predicted = job_seconds(p, costs, c, expected) / d->threads + touch_seconds(costs, c->bytes);
    c->slots = p->stream.frames >= 0 && p->stream.frames + c->schedule.taps - 1 <= c->chunk ? 2 : GC_CPU_SLOTS;
}
