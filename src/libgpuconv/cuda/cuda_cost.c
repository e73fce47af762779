/*
 * Cost model of convolution on a GPU: the operations of a schedule times the seconds of each operation (costs.h). The
 * samples of a file cross the bus in both directions while the device computes, so that the slower of the two counts.
 */
#include "cuda_cost.h"

#include "cuda_convolver.h"
#include "cuda_dense.h"
#include "cuda_device.h"
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

/* A chunk of a dense matrix has at least so many blocks, a tile of them: each chunk reads all responses. */
enum { DENSE_BLOCKS = 8 };

/* A convolution whose sizes are chosen. */
typedef struct job {
    const gc_costs *costs;
    const gpuconv_plan *plan;
    const gc_components *components;
    int64_t frames, known_frames; /* of the signal; known_frames: negative if the caller does not know them */
} job;

/* Returns the frames of which a chunk is a multiple. */
static int64_t step_of(const gc_schedule *s) {
    if (s->algorithm == GPUCONV_ALGORITHM_DIRECT)
        return 32 * 1024;
    return s->algorithm == GPUCONV_ALGORITHM_PARTITIONED && !gc_cuda_long_partitions(s) ? 2 * s->hop : s->hop;
}

static int64_t chunk_of(const gpuconv_ir *ir, const gc_schedule *s, int64_t frames) {
    int64_t channels = ir->inputs > ir->outputs ? ir->inputs : ir->outputs;
    int64_t total = frames + s->taps - 1, step = step_of(s);
    int64_t target = gc_min(chunk_samples / channels, total / CHUNKS);
    target = gc_max(target, chunk_samples_min / channels);
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX)
        target = gc_max(target, DENSE_BLOCKS * step);
    if (s->algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        target = gc_max(target, step * s->partitions); /* each chunk computes the spectra of the history again */
    /* Rounds to the nearest multiple: a chunk that is half a step shorter costs less than the wait for half a step
     * more. */
    return gc_max(step, gc_round_up(gc_min(target, total) - step / 2, step));
}

double gc_cuda_slowdown(int64_t points, bool three_kernels) {
    switch (points) {
    case 4096:
        return 1.37;
    case 8192:
        return 1.68;
    case 16384:
        return 1.82;
    case 32768:
        return three_kernels ? 1 : 2.7;
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

/* Returns the blocks of overlap-save that take the time of `blocks`. Transforms that take half a multiprocessor or a
 * whole one run in waves, and the last wave takes as long as a full one. */
static double blocks_in_full_waves(const gc_device *device, const gpuconv_ir *ir, int64_t points, double blocks) {
    const double resident = points == 16384 ? 2 : points == 32768 ? 1 : 0;
    const double wave = resident * device->multiprocessors / ir->outputs;
    return wave > 0 ? wave * ceil(blocks / wave) : blocks;
}

/* Returns whether overlap-save transforms the input once for many outputs (gck_overlap_save_fan). */
static bool fans(const gpuconv_ir *ir, const gc_schedule *s) {
    return s->transform == GCK_OVERLAP_SAVE_POINTS_MIN && gc_ir_one_route_each(ir) && ir->outputs >= 8 * ir->inputs;
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
    const double point = costs->seconds[GC_COST_CUDA_LONG] * gc_cuda_slowdown(s->transform, true) / 48;
    return chunks * ((double)s->transform / 2 * point * (32 * transforms + 8 * products) +
                     8 * costs->seconds[GC_COST_CUDA_LAUNCH]);
}

static double cost(const job *j, const gc_schedule *s, int64_t chunk) {
    const gpuconv_ir *ir = j->plan->ir;
    const gc_device *device = &j->plan->device;
    const double *t = j->costs->seconds;
    double total = (double)j->frames + (double)s->taps, n = (double)s->transform;
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
        const gck_overlap_save_form form = gc_cuda_overlap_save_form(device, ir, s->transform);
        bool three_kernels = gck_overlap_save_query(&form).scratch > 0;
        double blocks = ceil(total / (double)s->hop), transforms = 0.5 * ir->routes + 0.5 * ir->outputs;
        if (fans(ir, s)) /* the stores hide most of the transforms */
            transforms = 0.25 * ir->outputs;
        if (!three_kernels)
            blocks = blocks_in_full_waves(device, ir, s->transform, blocks);
        compute += outputs + blocks * transforms * n / 2 * gc_cuda_slowdown(s->transform, three_kernels) *
                                 t[three_kernels ? GC_COST_CUDA_LONG : GC_COST_CUDA_FUSED];
        /* Filling and draining the device takes about as long as a launch. */
        compute += (three_kernels ? 5 : 1.9) * t[GC_COST_CUDA_LAUNCH];
    } else if (s->algorithm == GPUCONV_ALGORITHM_MATRIX) {
        compute +=
            ceil(total / (double)chunk) * gc_cuda_dense_seconds(j->costs, device, j->components, s, chunk / s->hop);
    } else if (gc_cuda_long_partitions(s)) {
        compute += outputs + long_partitions_cost(j->costs, ir, s, chunk, total);
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

/* Returns the slots of a stream: one for each chunk, but at least as many as overlap reading, computing and writing if
 * the signal is longer than the caller said. frames: of the signal, or negative. */
static int slots_of(const gpuconv_ir *ir, int64_t chunk, int64_t frames) {
    const int64_t least = 3, chunks = frames < 0 ? GC_CUDA_SLOTS : (frames + ir->frames - 1 + chunk - 1) / chunk;
    return (int)gc_min(gc_max(chunks, least), GC_CUDA_SLOTS);
}

/* Returns the approximate bytes of device memory of a stream; components: for the algorithm matrix. */
static double device_bytes(const gc_device *device, const gpuconv_ir *ir, const gc_components *components,
                           const gc_schedule *s, int64_t chunk, int slots) {
    double c = (double)chunk, n = (double)s->transform, inputs = ir->inputs, outputs = ir->outputs;
    double bytes = 4 * (2 * inputs * (c + (double)gc_schedule_history(s)) + outputs * c) +
                   4.0 * slots * (inputs + outputs) * c + 4 * (double)ir->planes * (double)s->taps +
                   (double)ir->routes * (double)(sizeof(gck_route) + sizeof(gck_dense_route));
    if (s->algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        const gck_overlap_save_form form = gc_cuda_overlap_save_form(device, ir, s->transform);
        gck_overlap_save_sizes size = gck_overlap_save_query(&form);
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
    if (s->algorithm == GPUCONV_ALGORITHM_MATRIX)
        bytes += gc_cuda_dense_bytes(components, s, chunk / s->hop);
    return bytes;
}

double gc_cuda_device_bytes(const gc_device *device, const gpuconv_ir *ir, const gpuconv_plan *plan) {
    gc_components components;
    const bool found = gc_components_find(ir, &components);
    const double bytes =
        found ? device_bytes(device, ir, &components, &plan->schedule, plan->chunk, plan->slots) : HUGE_VAL;
    gc_components_free(&components);
    return bytes;
}

/* Makes the schedule of an algorithm with transforms of n points if there are kernels for it and the device has enough
 * shared memory for them. second: the other schedule of this size, if there are two. */
static bool make_schedule(const gpuconv_plan *plan, gpuconv_algorithm algorithm, int64_t n, bool second,
                          gc_schedule *s) {
    const gpuconv_ir *ir = plan->ir;
    if (algorithm == GPUCONV_ALGORITHM_MATRIX) {
        const gck_dense_sizes size = gck_dense_query(n);
        return size.twiddles && size.shared_bytes <= plan->device.shared_memory &&
               gc_cuda_dense_schedule(ir->frames, n, !second, s);
    }
    if (second || !gc_schedule_make(algorithm, ir->frames, n, s))
        return false;
    if (gc_cuda_long_partitions(s)) {
        const gck_long_partitioned_sizes size = gck_long_partitioned_query(n);
        return size.spectrum && size.shared_bytes <= plan->device.shared_memory;
    }
    if (algorithm == GPUCONV_ALGORITHM_PARTITIONED)
        return gck_partitioned_shared_bytes(n) <= plan->device.shared_memory;
    if (algorithm == GPUCONV_ALGORITHM_OVERLAP_SAVE) {
        const gck_overlap_save_form form = gc_cuda_overlap_save_form(&plan->device, plan->ir, n);
        gck_overlap_save_sizes size = gck_overlap_save_query(&form);
        return size.twiddles && size.shared_bytes <= plan->device.shared_memory;
    }
    return true;
}

/* Reports why no size was chosen and sets plan->bytes to the memory that is missing for it. least: bytes of the
 * smallest one; HUGE_VAL: there is none. */
static gpuconv_status fail(gpuconv_plan *plan, gpuconv_algorithm algorithm, double least, gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    plan->bytes = least < HUGE_VAL ? least / GC_CUDA_MEMORY_SHARE : 0;
    if (least < HUGE_VAL)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "%d inputs, %d outputs and %d responses of %lld frames need %.2f GB with %s; %s has %.2f GB%s",
                       ir->inputs, ir->outputs, ir->routes, (long long)ir->frames, plan->bytes * 1e-9,
                       gpuconv_algorithm_name(algorithm), plan->device.name, plan->device.memory * 1e-9,
                       plan->device.started ? " free" : "");
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "a response of %lld frames is too long for %s on %s: transforms have at most %d points",
                   (long long)ir->frames, gpuconv_algorithm_name(algorithm), plan->device.name,
                   algorithm == GPUCONV_ALGORITHM_MATRIX ? GCK_DENSE_POINTS_MAX : GCK_OVERLAP_SAVE_POINTS_MAX);
}

/* Halves the chunk until the memory suffices, and sets the slots and bytes of `sized`. Returns false if not even one
 * step fits. */
static bool fit_chunk(const job *j, gpuconv_plan *sized) {
    const gc_device *device = &j->plan->device;
    const int64_t step = step_of(&sized->schedule);
    for (;; sized->chunk = gc_round_up(sized->chunk / 2, step)) {
        sized->slots = slots_of(j->plan->ir, sized->chunk, j->known_frames);
        sized->bytes = device_bytes(device, j->plan->ir, j->components, &sized->schedule, sized->chunk, sized->slots);
        if (sized->bytes <= GC_CUDA_MEMORY_SHARE * device->memory)
            return true;
        if (sized->chunk <= step)
            return false;
    }
}

/* Chooses the sizes for one algorithm. */
static gpuconv_status plan_sizes(const job *j, gpuconv_plan *plan, gpuconv_algorithm algorithm, gpuconv_error *error) {
    const gpuconv_ir *ir = plan->ir;
    double least = HUGE_VAL;
    plan->predicted = HUGE_VAL;
    plan->products = gc_components_products(j->components);
    const int64_t last =
        algorithm == GPUCONV_ALGORITHM_DIRECT ? GCK_PARTITIONED_POINTS_MIN : GCK_OVERLAP_SAVE_POINTS_MAX;
    for (int64_t n = GCK_PARTITIONED_POINTS_MIN; n <= last; n *= 2)
        for (int second = 0; second < 2; second++) {
            gc_schedule s;
            if (!make_schedule(plan, algorithm, n, second, &s))
                continue;
            gpuconv_plan sized = {.schedule = s, .chunk = chunk_of(ir, &s, j->frames)};
            if (gc_cuda_long_partitions(&s) && s.partitions + sized.chunk / s.hop > GCK_LONG_PARTITIONED_BLOCKS_MAX)
                continue;
            const bool fits = fit_chunk(j, &sized);
            least = fmin(least, sized.bytes);
            if (!fits)
                continue;
            const double seconds = cost(j, &s, sized.chunk);
            if (seconds < plan->predicted) {
                plan->predicted = seconds;
                plan->schedule = s;
                plan->chunk = sized.chunk;
                plan->slots = sized.slots;
                plan->bytes = sized.bytes;
            }
        }
    return plan->predicted < HUGE_VAL ? GPUCONV_OK : fail(plan, algorithm, least, error);
}

gpuconv_status gc_cuda_plan(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                            gpuconv_error *error) {
    const gc_costs costs = gc_costs_of_cuda(plan->device.name, plan->device.multiprocessors);
    gc_components components;
    gpuconv_status status = GPUCONV_OK;
    if (!gc_components_find(plan->ir, &components)) {
        status = gc_fail_memory(error, "the plan");
    } else if (algorithm == GPUCONV_ALGORITHM_MATRIX &&
               (components.count < 1 || components.count > GC_CUDA_DENSE_PARTS_MAX)) {
        status = gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                         "the response has %d parts that share no channel; matrix on %s takes 1 to %d",
                         components.count, plan->device.name, GC_CUDA_DENSE_PARTS_MAX);
    } else {
        const job j = {&costs, plan, &components, config->frames >= 0 ? config->frames : unknown_frames,
                       config->frames};
        status = plan_sizes(&j, plan, algorithm, error);
    }
    gc_components_free(&components);
    return status;
}
