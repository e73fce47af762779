/*
 * Cost model of convolution on a GPU: the operations of a schedule times the seconds of each operation (costs.h). The
 * samples of a file cross the bus in both directions while the device computes, so that the slower of the two counts.
 */
#include "cuda_cost.h"

#include "cuda_convolver.h"
#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

/* The length that is assumed if the caller does not know it: ten minutes at 48 kHz. */
static const int64_t unknown_frames = INT64_C(600) * 48000;

/* A chunk has at most chunk_samples samples, enough for the kernels to fill the device and for copies of megabytes, and
 * fewer if the signal is short, so that there are about CHUNKS chunks for the three streams to overlap. */
static const int64_t chunk_samples = INT64_C(3) << 20, chunk_samples_min = INT64_C(1) << 16;
enum { CHUNKS = 12 };

static int64_t chunk_of(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames) {
    int64_t channels = ir->inputs > ir->outputs ? ir->inputs : ir->outputs;
    int64_t total = frames + s->taps - 1, step = 32 * 1024;
    int64_t target = gc_min(chunk_samples / channels, total / CHUNKS);
    target = gc_max(target, chunk_samples_min / channels);
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE)
        step = s->hop;
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        step = gc_cuda_long_partitions(s) ? s->hop : 2 * s->hop;
        target = gc_max(target, step * s->partitions); /* each chunk computes the spectra of the history again */
    }
    /* Rounds to the nearest multiple: a chunk that is half a step shorter costs less than the wait for half a step
     * more. */
    return gc_max(step, gc_round_up(gc_min(target, total) - step / 2, step));
}

double gc_cuda_slowdown(int64_t points) {
    switch (points) {
    case 4096:
        return 1.37;
    case 8192:
        return 2;
    case INT64_C(1) << 19:
    case INT64_C(1) << 20:
        return 1.1;
    case INT64_C(1) << 21:
        return 1.22;
    default:
        return 1;
    }
}

double gc_cuda_tap_cost(const gc_device *device, const gpuconv_ir *ir) {
    const double taps = (double)ir->frames;
    if (device->tensor_cores && gck_direct_tensor_table_size(ir->frames) > 0 && gc_ir_one_route_each(ir))
        return ir->frames <= 129 ? 0.32 * (taps + 16) : 0.62 * taps;
    return ir->frames <= GCK_DIRECT_SHORT_TAPS_MAX ? 0.75 * taps : taps;
}

/* Returns the seconds of partitioned convolution with long transforms. GC_COST_CUDA_LONG is the time of a point that
 * crosses the memory with 48 bytes: samples in and out, the scratch memory written and read twice. Here a transform
 * forward or back takes 32 bytes, and a product of eight blocks reads the spectra of all partitions and of as many
 * blocks and seven more. */
static double long_partitions_cost(const gc_costs *costs, const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk,
                                   double total) {
    const double blocks = (double)(chunk / s->hop), partitions = (double)s->partitions,
                 chunks = ceil(total / (double)chunk), groups = ceil(blocks / 8);
    const double transforms = ir->inputs * (blocks + partitions - 1) + ir->outputs * blocks;
    const double products = ir->routes * groups * (2 * partitions + 7) + ir->outputs * blocks;
    const double point = costs->seconds[GC_COST_CUDA_LONG] * gc_cuda_slowdown(s->transform) / 48;
    return chunks * ((double)s->transform / 2 * point * (32 * transforms + 8 * products) +
                     8 * costs->seconds[GC_COST_CUDA_LAUNCH]);
}

static double cost(const gc_costs *costs, const gc_device *device, const gpuconv_ir *ir, const gc_schedule *s,
                   int64_t chunk, int64_t frames) {
    const double *t = costs->seconds;
    double total = (double)frames + (double)s->taps, n = (double)s->transform;
    /* The copies of the first chunk in and of the last one out are not overlapped. They are taken to be the same for
     * every algorithm, so that the computation decides. */
    double not_overlapped = 4.0 * (ir->inputs + ir->outputs) * fmin((double)chunk_samples, total) * t[GC_COST_BUS_BYTE];
    double bus = total * 4 * (ir->inputs > ir->outputs ? ir->inputs : ir->outputs) * t[GC_COST_BUS_BYTE];
    double compute = total * (ir->inputs + ir->outputs) * t[GC_COST_CUDA_SAMPLE];
    double outputs = total * ir->outputs * t[GC_COST_CUDA_OUTPUT];
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT) {
        /* With few taps the limit is memory: a sample in, a sample out. */
        double taps = total * ir->routes * gc_cuda_tap_cost(device, ir) * t[GC_COST_CUDA_TAP];
        compute += fmax(outputs + taps, 2 * outputs) + t[GC_COST_CUDA_LAUNCH];
    } else if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        bool three_kernels = gck_overlap_save_query(s->transform).scratch > 0;
        double blocks = ceil(total / (double)s->hop), transforms = 0.5 * ir->routes + 0.5 * ir->outputs;
        compute += outputs + blocks * transforms * n / 2 * gc_cuda_slowdown(s->transform) *
                                 t[three_kernels ? GC_COST_CUDA_LONG : GC_COST_CUDA_FUSED];
        /* Filling and draining the device takes about as long as a launch. */
        compute += (three_kernels ? 5 : 1.9) * t[GC_COST_CUDA_LAUNCH];
    } else if (gc_cuda_long_partitions(s)) {
        compute += outputs + long_partitions_cost(costs, ir, s, chunk, total);
    } else {
        double pairs = (double)(chunk / (2 * s->hop)), chunks = ceil(total / (double)chunk);
        double spectra = ir->inputs * (pairs + (double)s->partitions - 1) + ir->outputs * pairs;
        double products = ir->routes * pairs * (double)gc_round_up(s->partitions, GCK_PARTITION_STEP);
        compute += chunks * (spectra * n * fmax(log2(n) * t[GC_COST_CUDA_LEVEL], t[GC_COST_CUDA_PASS]) +
                             products * n * t[GC_COST_CUDA_BIN]);
        compute += 7 * t[GC_COST_CUDA_LAUNCH];
    }
    /* The slower one counts fully. The other one counts half: otherwise all schedules that compute faster than the bus
     * would have equal cost. */
    return fmax(compute, bus) + 0.5 * fmin(compute, bus) + not_overlapped;
}

double gc_cuda_device_bytes(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    double c = (double)chunk, n = (double)s->transform, inputs = ir->inputs, outputs = ir->outputs;
    double bytes = 4 * (2 * inputs * (c + (double)gc_schedule_history(s)) + outputs * c) +
                   4.0 * GC_CUDA_SLOTS * (inputs + outputs) * c + 4 * (double)ir->planes * (double)s->taps;
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        gck_overlap_save_sizes size = gck_overlap_save_query(s->transform);
        double transforms = (double)gc_cuda_scratch_transforms(ir, s, chunk);
        bytes += 8 * (ir->planes * (double)size.spectrum + transforms * (double)size.scratch);
    }
    if (gc_cuda_long_partitions(s)) {
        double p = (double)s->partitions, blocks = c / (double)s->hop;
        bytes += 4 * n * (ir->planes * p + inputs * (p - 1 + blocks) + outputs * blocks);
    } else if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        double p = (double)gc_cuda_partitions(s), pairs = c / (2 * (double)s->hop);
        bytes += 8 * n * (ir->planes * p + inputs * (p + pairs) + outputs * pairs);
    }
    return bytes;
}

/* Returns whether there are kernels for transforms of n points and the device has enough shared memory for them. */
static bool is_available(const gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t n) {
    if (algorithm == GPUCONV_ALGORITHM_PARTITIONED && n > GCK_PARTITIONED_POINTS_MAX) {
        gck_long_partitioned_sizes size = gck_long_partitioned_query(n);
        return size.spectrum && size.shared_bytes <= plan->device.shared_memory;
    }
    if (algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        return gck_partitioned_shared_bytes(n) <= plan->device.shared_memory;
    if (algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        gck_overlap_save_sizes size = gck_overlap_save_query(n);
        return size.twiddles && size.shared_bytes <= plan->device.shared_memory &&
               (size.many_routes || gc_ir_one_route_each(plan->ir));
    }
    return true;
}

gpuconv_status gc_cuda_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                            gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    int64_t frames = config->frames >= 0 ? config->frames : unknown_frames;
    gc_costs costs = gc_costs_of_cuda(plan->device.name, plan->device.multiprocessors);
    plan->slots = GC_CUDA_SLOTS;
    plan->predicted = HUGE_VAL;
    for (int64_t n = GCK_PARTITIONED_POINTS_MIN; n <= GCK_OVERLAP_SAVE_POINTS_MAX; n *= 2) {
        gc_schedule s;
        if (!is_available(plan, algorithm, n) || !gc_schedule_make(algorithm, ir->frames, n, &s))
            continue;
        int64_t chunk = chunk_of(ir, &s, frames);
        if (gc_cuda_device_bytes(ir, &s, chunk) > 0.8 * plan->device.memory)
            continue;
        if (gc_cuda_long_partitions(&s) && s.partitions + chunk / s.hop > GCK_LONG_PARTITIONED_BLOCKS_MAX)
            continue;
        double seconds = cost(&costs, &plan->device, ir, &s, chunk, frames);
        if (seconds < plan->predicted) {
            plan->predicted = seconds;
            plan->schedule = s;
            plan->chunk = chunk;
        }
        if (algorithm == GPUCONV_ALGORITHM_DIRECT)
            break;
    }
    if (plan->predicted < HUGE_VAL)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "a response of %lld frames is too long for %s on %s: transforms have at most %d points",
                   (long long)ir->frames, gpuconv_algorithm_name(algorithm), plan->device.name,
                   GCK_OVERLAP_SAVE_POINTS_MAX);
}
