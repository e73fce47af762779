/*
 * The GPU's cost model: operations counted from the schedule, times what one takes (costs.h). A file's samples cross
 * the bus both ways while the device computes, so the slower of the two counts.
 */
#include "cuda_cost.h"

#include "kernels/engine/kernels.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>

static const int64_t unknown_frames = INT64_C(600) * 48000;

/* A chunk has as many samples as let the kernels fill the device and the bus work in pieces of megabytes, but there are
 * enough chunks for the three streams to meet. */
static const int64_t chunk_samples = INT64_C(3) << 20, chunk_least = INT64_C(1) << 16;
enum { CHUNKS_WANTED = 12 };

static int64_t chunk_of(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames) {
    int64_t channels = ir->inputs > ir->outputs ? ir->inputs : ir->outputs;
    int64_t total = frames + s->taps - 1, step = 32 * 1024;
    int64_t aim = gc_min(chunk_samples / channels, total / CHUNKS_WANTED);
    aim = gc_max(aim, chunk_least / channels);
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE)
        step = s->hop;
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        step = 2 * s->hop;
        aim = gc_max(aim, step * s->partitions); /* the history's spectra are made anew in each chunk */
    }
    /* The nearest multiple: half a transform too few costs less than half a one too many to wait for. */
    return gc_max(step, gc_round_up(gc_min(aim, total) - step / 2, step));
}

double gc_cuda_slower(int64_t points) {
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

double gc_cuda_taps(const gc_device *device, const gpuconv_ir *ir) {
    const double taps = (double)ir->frames;
    if (device->tensor_cores && gck_tensor_table_size(ir->frames) > 0 && gc_ir_one_route_each(ir))
        return ir->frames <= 129 ? 0.32 * (taps + 16) : 0.62 * taps;
    return ir->frames <= GCK_FEW_TAPS ? 0.75 * taps : taps;
}

static double cost(const gc_costs *costs, const gc_device *device, const gpuconv_ir *ir, const gc_schedule *s,
                   int64_t chunk, int64_t frames) {
    const double *t = costs->seconds;
    double total = (double)frames + (double)s->taps, n = (double)s->transform;
    /* The first chunk in, the last one out; the same for every algorithm, so that what they compute decides. */
    double across = 4.0 * (ir->inputs + ir->outputs) * fmin((double)chunk_samples, total) * t[GC_COST_BUS_BYTE];
    double bus = total * 4 * (ir->inputs > ir->outputs ? ir->inputs : ir->outputs) * t[GC_COST_BUS_BYTE];
    double compute = total * (ir->inputs + ir->outputs) * t[GC_COST_CUDA_SAMPLE];
    double outputs = total * ir->outputs * t[GC_COST_CUDA_OUTPUT];
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT) {
        /* Under a few taps memory decides: a sample in, a sample out. */
        double taps = total * ir->routes * gc_cuda_taps(device, ir) * t[GC_COST_CUDA_TAP];
        compute += fmax(outputs + taps, 2 * outputs) + t[GC_COST_CUDA_LAUNCH];
    } else if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        bool three = gck_overlap_save_size(s->transform).scratch > 0;
        double blocks = ceil(total / (double)s->hop), transforms = 0.5 * ir->routes + 0.5 * ir->outputs;
        compute += outputs + blocks * transforms * n / 2 * gc_cuda_slower(s->transform) *
                                 t[three ? GC_COST_CUDA_LONG : GC_COST_CUDA_FUSED];
        /* Filling and draining the device takes as long as launching. */
        compute += (three ? 5 : 1.9) * t[GC_COST_CUDA_LAUNCH];
    } else {
        double pairs = (double)(chunk / (2 * s->hop)), chunks = ceil(total / (double)chunk);
        double spectra = ir->inputs * (pairs + (double)s->partitions - 1) + ir->outputs * pairs;
        double products = ir->routes * pairs * (double)gc_round_up(s->partitions, GCK_PARTITION_STEP);
        compute += chunks * (spectra * n * fmax(log2(n) * t[GC_COST_CUDA_LEVEL], t[GC_COST_CUDA_PASS]) +
                             products * n * t[GC_COST_CUDA_BIN]);
        compute += 7 * t[GC_COST_CUDA_LAUNCH];
    }
    /* The slower one decides; the other counts too, or all that hide behind the bus would be equal. */
    return fmax(compute, bus) + 0.5 * fmin(compute, bus) + across;
}

/* Bytes of device memory, within a few of what the state takes. */
static double memory(const gpuconv_ir *ir, const gc_schedule *s, int64_t chunk) {
    double c = (double)chunk, n = (double)s->transform, inputs = ir->inputs, outputs = ir->outputs;
    double bytes = 4 * (2 * inputs * (c + (double)gc_schedule_history(s)) + outputs * c) +
                   4.0 * GC_CUDA_SLOTS * (inputs + outputs) * c + 4 * (double)ir->planes * (double)s->taps;
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        gck_transform_size size = gck_overlap_save_size(s->transform);
        double blocks = c / (double)s->hop;
        bytes += 8 * (ir->planes * (double)size.spectrum + (inputs + outputs) * blocks * (double)size.scratch);
    }
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED) {
        double p = (double)gc_round_up(s->partitions, GCK_PARTITION_STEP), pairs = c / (2 * (double)s->hop);
        bytes += 8 * n * (ir->planes * p + inputs * (p + pairs) + outputs * pairs);
    }
    return bytes;
}

/* Whether the device has kernels for transforms of n points. */
static bool fits(const gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t n) {
    if (algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        return n <= GCK_POINTS_MOST && gck_transform_shared(n) <= plan->device.shared_memory;
    if (algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        gck_transform_size size = gck_overlap_save_size(n);
        return size.turns && size.bytes <= plan->device.shared_memory && (size.sums || gc_ir_one_route_each(plan->ir));
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
    for (int64_t n = GCK_POINTS_LEAST; n <= GCK_OVERLAP_SAVE_MOST; n *= 2) {
        gc_schedule s;
        if (!fits(plan, algorithm, n) || !gc_schedule_make(algorithm, ir->frames, n, &s))
            continue;
        int64_t chunk = chunk_of(ir, &s, frames);
        if (memory(ir, &s, chunk) > 0.8 * plan->device.memory)
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
                   algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE ? GCK_OVERLAP_SAVE_MOST : GCK_POINTS_MOST);
}
