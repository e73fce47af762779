/*
 * The CPU's cost model: counts the operations of a schedule and multiplies them by their costs (costs.h). On another
 * machine the built-in costs are all wrong by a similar factor, so they still rank the choices.
 */
#include "cpu_cost.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/fft.h"
#include "libgpuconv/dsp/matrix_product.h"
#include "libgpuconv/engine/components.h"
#include "libgpuconv/engine/matrix_schedule.h"

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

/* The same for the algorithm matrix, whose responses alone are two times their taps in every size. */
static const double matrix_memory = 1e9;

/* Chunks of the algorithm matrix are short enough that the spectra of their blocks need no more than this. */
static const int64_t spectra_memory = INT64_C(256) << 20;

/* Chunks are not made longer for more threads beyond this number of bytes. */
static const double chunk_memory = 512e6;

/* The length of a job, and the most frames of a chunk. */
typedef struct extent {
    int64_t frames, most;
} extent;

double gc_cpu_fft_seconds(const gc_costs *c, int64_t points) {
    gc_cost level = points > (1 << 18)   ? GC_COST_CPU_LEVEL_LARGE
                    : points > (1 << 16) ? GC_COST_CPU_LEVEL_MEDIUM
                                         : GC_COST_CPU_LEVEL_SMALL;
    return (double)points * log2((double)points) * c->seconds[level];
}

static int64_t chunk_frames(const gpuconv_ir *ir, const gc_schedule *s, const extent *job, int threads);

/* Returns the seconds of the products of one block with all routes, one bin at a time. Spectra of responses that exceed
 * the caches are read from memory: for each block by overlap-save, the more of them the more they exceed the share of
 * the last level that is left to them, and by partitioned convolution if the spectra that one output needs exceed the
 * second-level cache. Such a product takes as long as reading about 14 bytes in a row. */
static double route_seconds(const gc_costs *c, const gpuconv_ir *ir, const gc_schedule *s) {
    const double bins = (double)s->transform / 2 * (double)s->partitions;
    const double kept = 8e6, last_level = 32e6, second_level = 1.5e6, slab = 4096;
    const double bin = c->seconds[GC_COST_CPU_BIN], from_memory = fmax(bin, 14 * c->seconds[GC_COST_CPU_BYTE]);
    double streamed = fmin(1, fmax(0, 8 * bins * ir->planes - kept) / (last_level - kept));
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        streamed = 2 * slab * (double)s->partitions * ir->routes / ir->outputs > second_level;
    return ir->routes * bins * (bin + streamed * (from_memory - bin));
}

/* Returns the time of `count` rows or columns of a product of matrices, in full ones: rows
 * of a tile that is not full cost a little more. */
static double full_rows(int64_t count) {
    static const double rest[GC_MATRIX_ROWS] = {0, 1.7, 2.4};
    const int64_t left = count % GC_MATRIX_ROWS;
    return (double)(count - left) + rest[left];
}

/* Returns the seconds of `blocks` blocks of the algorithm matrix in chunks of `chunk` blocks: the products are bound by
 * arithmetic or by reading the responses once a chunk; spectra of inputs and outputs are written and read in slabs. */
static double matrix_seconds(const gc_costs *c, const gc_components *parts, const gc_schedule *s, double blocks,
                             int64_t chunk) {
    const double bins = (double)s->transform / 2, byte = c->seconds[GC_COST_CPU_BYTE];
    const double columns = full_rows(chunk), chunks = ceil(blocks / (double)chunk);
    double seconds = 0, spectra = 0;
    for (int i = 0; i < parts->count; i++) {
        const double inputs = parts->component[i].inputs, outputs = parts->component[i].outputs;
        const double factors = inputs * (double)s->partitions;
        const double products =
            full_rows(parts->component[i].outputs) * factors * columns * c->seconds[GC_COST_CPU_MATRIX];
        seconds += chunks * bins * fmax(products, outputs * factors * 8 * byte);
        spectra += blocks * (inputs + outputs) + chunks * inputs * (double)(s->partitions - 1);
    }
    return seconds + spectra * bins * 16 * byte;
}

/* Returns the seconds on one thread, the transforms of the response included. */
static double job_seconds(const gc_costs *c, const gpuconv_ir *ir, const gc_components *parts, const gc_schedule *s,
                          const extent *job) {
    double total = (double)job->frames + (double)s->taps;
    double copies = total * (ir->inputs + ir->outputs) * c->seconds[GC_COST_CPU_SAMPLE];
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return total * (double)s->taps * ir->routes * c->seconds[GC_COST_CPU_TAP] + copies;
    double blocks = ceil(total / (double)s->hop), fft = gc_cpu_fft_seconds(c, s->transform);
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX) {
        const double moves = (double)s->transform * 8 * c->seconds[GC_COST_CPU_BYTE];
        return blocks * (ir->inputs + ir->outputs) * fft + copies +
               matrix_seconds(c, parts, s, blocks, chunk_frames(ir, s, job, NOMINAL_THREADS) / s->hop) +
               (double)(ir->routes * s->partitions) * (fft + moves);
    }
    double block = (ir->inputs + ir->outputs) * fft + route_seconds(c, ir, s);
    return blocks * block + copies + (double)(ir->planes * s->partitions) * fft;
}

/* Returns the blocks for which one pass over the responses pays: full tiles, fewer where their spectra take much
 * memory.
 */
static int64_t matrix_blocks(const gpuconv_ir *ir, const gc_schedule *s) {
    int64_t blocks = 4 * GC_MATRIX_ROWS;
    while (blocks > GC_MATRIX_ROWS && 4 * s->transform * blocks * (ir->inputs + ir->outputs) > spectra_memory)
        blocks -= GC_MATRIX_ROWS;
    return blocks;
}

/* Returns the frames of a chunk: enough that every thread has work and switching chunks costs little, but not more,
 * because most memory is used for chunks. At most job->most if one step is not longer. */
static int64_t chunk_frames(const gpuconv_ir *ir, const gc_schedule *s, const extent *job, int threads) {
    int64_t most = gc_max(ir->inputs, ir->outputs), least = gc_min(ir->inputs, ir->outputs);
    int64_t total = job->frames + s->taps - 1, step = GC_DIRECT_SPAN,
            target = gc_max(step, gc_min(262144, 524288 / most));
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        step = s->hop;
        target = gc_max(target, step * ((threads + least - 1) / least));
    } else if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        step = s->hop;
        target = gc_max(target, 16 * step);
    } else if (s->algorithm == GPUCONV_ALGORITHM_MATRIX) {
        step = s->hop;
        target = gc_max(target, step * matrix_blocks(ir, s));
    } else {
        target = gc_max(target, gc_min(s->taps, INT64_C(1) << 20));
    }
    return gc_max(step, gc_min(gc_round_up(gc_min(target, total), step), job->most - job->most % step));
}

/* Returns the most spectra that a job of overlap-save holds: of a component's inputs, and of a sum for several outputs.
 */
static int most_spectra(const gc_components *parts) {
    int most = 0;
    for (int i = 0; i < parts->count; i++)
        most = (int)gc_max(most, parts->component[i].inputs + (parts->component[i].outputs > 1));
    return most;
}

/* Returns the approximate bytes of a convolver and of its stream's chunks. */
static double memory_bytes(const gpuconv_ir *ir, const gc_components *parts, const gc_schedule *s, int64_t chunk,
                           int threads) {
    double channels = ir->inputs + ir->outputs, block = (double)s->transform;
    const int64_t blocks = chunk / s->hop;
    double workers = fmin(threads, (double)(blocks * parts->count));
    double spectra = ir->planes * (double)s->partitions * block, chunks = (double)chunk * channels * 4;
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX) {
        spectra = (double)gc_components_products(parts) * (double)s->partitions * block + threads * block * 2 +
                  block * (channels * (double)blocks + ir->inputs * (double)(s->partitions - 1));
        return 4 * (spectra + chunks + block / 2 + ir->inputs * (double)(s->transform - s->hop));
    }
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        spectra += ir->inputs * (double)s->partitions * block + channels * (double)chunk * 2;
    else
        spectra += workers * block * (1 + most_spectra(parts));
    return 4 * (spectra + chunks + block / 2 + ir->inputs * (double)gc_schedule_history(s));
}

/* Returns the next transform size after n (n = 0: the first) and fills its schedule; returns 0 after the last. Only
 * hops that are multiples of 32 count, because gc_fft_inverse writes whole vectors. Direct has one pseudo size, 1. */
static int64_t next_size(gpuconv_algorithm algorithm, int64_t taps, int64_t n, gc_schedule *s) {
    if (algorithm == GPUCONV_ALGORITHM_DIRECT)
        return n == 0 && gc_schedule_make(algorithm, taps, 1, s) ? 1 : 0;
    for (n = n ? 2 * n : GC_FFT_MIN_POINTS; n <= INT64_C(1) << 24; n *= 2) {
        bool made = algorithm == GPUCONV_ALGORITHM_MATRIX ? gc_matrix_schedule_make(taps, n, s)
                                                          : gc_schedule_make(algorithm, taps, n, s);
        if (made && s->hop % 32 == 0)
            return n;
    }
    return 0;
}

/* Returns chunk_frames for the real number of threads, shortened to what chunk_memory allows. */
static int64_t limited_chunk_frames(const gpuconv_ir *ir, const gc_components *parts, const gc_schedule *s,
                                    const extent *job, int threads) {
    int64_t least = gc_min(chunk_frames(ir, s, job, NOMINAL_THREADS), chunk_frames(ir, s, job, threads));
    int64_t chunk = chunk_frames(ir, s, job, threads);
    while (chunk - s->hop >= least && memory_bytes(ir, parts, s, chunk, threads) > chunk_memory)
        chunk -= s->hop;
    return chunk;
}

/* Returns the bytes that a transform size may use: transform_memory, or 1.5 times the least of all sizes if that is
 * more. */
static double memory_limit(gpuconv_algorithm algorithm, const gpuconv_ir *ir, const gc_components *parts,
                           const extent *job) {
    gc_schedule s;
    double least = HUGE_VAL;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;)
        least = fmin(least, memory_bytes(ir, parts, &s, chunk_frames(ir, &s, job, NOMINAL_THREADS), NOMINAL_THREADS));
    return algorithm == GPUCONV_ALGORITHM_MATRIX ? fmax(matrix_memory, 2.5 * least)
                                                 : fmax(transform_memory, 1.5 * least);
}

/* Returns the seconds in which the system provides and clears memory that is used for the first time. The first
 * megabyte is free: the allocator has it, and the difference between short jobs is in their arithmetic. */
static double touch_seconds(const gc_costs *c, double bytes) {
    return 2 * c->seconds[GC_COST_CPU_BYTE] * fmax(0, bytes - 1e6);
}

/* Chooses the transform size for one algorithm and fills the plan. Returns UNSUPPORTED. */
static gpuconv_status plan_sizes(const gc_costs *costs, const gc_components *parts, gpuconv_plan *plan,
                                 gpuconv_algorithm algorithm, int64_t frames, gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    const int64_t most = plan->chunk_most ? plan->chunk_most : INT64_MAX;
    const extent planned = {frames < 0 ? long_input : gc_min(frames, long_input), most};
    const extent true_job = {frames < 0 ? INT64_MAX / 4096 : frames, most},
                 expected = {frames < 0 ? long_input : frames, most};
    double best = HUGE_VAL, limit = memory_limit(algorithm, ir, parts, &planned);
    gc_schedule s;
    for (int64_t n = 0; (n = next_size(algorithm, ir->frames, n, &s)) > 0;) {
        const int64_t chunk = chunk_frames(ir, &s, &planned, NOMINAL_THREADS);
        const double bytes = memory_bytes(ir, parts, &s, chunk, NOMINAL_THREADS);
        const double seconds = job_seconds(costs, ir, parts, &s, &planned) + touch_seconds(costs, bytes);
        if (seconds < best && bytes <= limit && chunk <= most) {
            best = seconds;
            plan->schedule = s;
        }
    }
    if (!(best < HUGE_VAL))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "a response of %lld frames is too long for %s on the CPU%s",
                       (long long)ir->frames, gpuconv_algorithm_name(algorithm),
                       plan->chunk_most ? " within the latency asked for" : "");
    plan->cost = best;
    plan->chunk = limited_chunk_frames(ir, parts, &plan->schedule, &true_job, plan->device.threads);
    plan->bytes = memory_bytes(ir, parts, &plan->schedule, plan->chunk, plan->device.threads);
    plan->predicted = job_seconds(costs, ir, parts, &plan->schedule, &expected) / plan->device.threads +
                      touch_seconds(costs, plan->bytes);
    plan->products = gc_components_products(parts);
    return GPUCONV_OK;
}

gpuconv_status gc_cpu_plan_by(const gc_costs *costs, gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t frames,
                              gpuconv_error *error) {
    gc_components parts;
    gpuconv_status status = gc_components_find(plan->ir, &parts)
                                ? plan_sizes(costs, &parts, plan, algorithm, frames, error)
                                : gc_fail_memory(error, "the plan");
    gc_components_free(&parts);
    return status;
}

gpuconv_status gc_cpu_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                           gpuconv_error *error) {
    gc_costs costs = gc_costs_of_cpu(plan->device.name);
    return gc_cpu_plan_by(&costs, plan, algorithm, config->frames, error);
}
