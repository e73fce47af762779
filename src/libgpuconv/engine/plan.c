/*
 * The choice of backend, algorithm and sizes, with the reason.
 *
 * Each backend predicts the time of every algorithm with its cost model; the fastest algorithm is chosen. A GPU is
 * probed only if the CPU would take longer than the GPU takes to initialise, so short jobs never load the driver.
 */
#include "plan.h"

#include "backends.h"
#include "matrix_schedule.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void gpuconv_config_init(gpuconv_config *config, size_t size) {
    const gpuconv_config defaults = {.device = -1, .frames = -1};
    gc_sized_struct_init(config, size, &defaults, sizeof defaults);
}

gpuconv_status gc_config_read(const gpuconv_config *from, gpuconv_config *config, gpuconv_error *error) {
    *config = gpuconv_config_default();
    return gc_sized_struct_read(
        &(gc_sized_struct){config, sizeof *config, GC_SIZE_UP_TO(gpuconv_config, frames), "gpuconv_config"}, from,
        error);
}

const char *gpuconv_backend_name(gpuconv_backend backend) {
    switch (backend) {
    case GPUCONV_BACKEND_AUTO:
        return "auto";
    case GPUCONV_BACKEND_CPU:
        return "cpu";
    case GPUCONV_BACKEND_CUDA:
        return "cuda";
    }
    return "unknown";
}

const char *gpuconv_algorithm_name(gpuconv_algorithm algorithm) {
    switch (algorithm) {
    case GPUCONV_ALGORITHM_AUTO:
        return "auto";
    case GPUCONV_ALGORITHM_DIRECT:
        return "direct";
    case GPUCONV_ALGORITHM_OVERLAP_SAVE:
        return "overlap-save";
    case GPUCONV_ALGORITHM_PARTITIONED:
        return "partitioned";
    case GPUCONV_ALGORITHM_MATRIX:
        return "matrix";
    }
    return "unknown";
}

/* Shorter chunks than half of this have no whole block of the shortest transforms. */
enum { LEAST_LATENCY = 1024 };

static gpuconv_status check_config(const gpuconv_config *config, gpuconv_error *error) {
    if ((int)config->backend < 0 || (int)config->backend >= GC_BACKENDS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown backend %d", (int)config->backend);
    if ((int)config->algorithm < 0 || (int)config->algorithm >= GC_ALGORITHMS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown algorithm %d", (int)config->algorithm);
    if (config->device < -1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "device %d: use 0 or more, or -1 for any device", config->device);
    if (config->threads < 0 || config->threads > 1024)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%d threads: use 1 to 1024, or 0 for all cores", config->threads);
    if (config->latency_frames < -1 || config->latency_frames > INT64_MAX / 4096 ||
        (config->latency_frames > 0 && config->latency_frames < LEAST_LATENCY))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a latency of %lld frames is out of range; use 1024 or more, 0 for the default, -1 for any; "
                       "gpuconv_realtime has none",
                       (long long)config->latency_frames);
    if (config->frames < -1 || config->frames > INT64_MAX / 4096)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "an input of %lld frames is out of range",
                       (long long)config->frames);
    return GPUCONV_OK;
}

/* The latency of a stream whose length is unknown, if its configuration does not say more. */
static const int64_t stream_latency = 8192;

static gpuconv_plan *new_plan(const gpuconv_ir *ir, const gpuconv_config *config) {
    gpuconv_plan *plan = gc_calloc(1, sizeof *plan);
    if (plan) {
        const int64_t latency = config->latency_frames ? config->latency_frames
                                : config->frames < 0   ? stream_latency
                                                       : -1;
        atomic_init(&plan->references, 1);
        plan->ir = gc_ir_hold(ir);
        plan->chunk_most = latency > 0 ? latency / (GC_BOUNDED_SLOTS - 1) : 0;
    }
    return plan;
}

/* The CUDA backend plans inputs of unknown length for this many frames (cuda/cuda_cost.c). Longer inputs are planned
 * for the same length, so that a pipe and a file with the same samples give the same bytes. cpu/cpu_cost.c has its own
 * length. */
static const int64_t cuda_long_input = INT64_C(600) * 48000;

/* Copies and kernels of a chunk on a GPU, which nothing overlaps where chunks are short. */
enum { CHUNK_LAUNCHES = 8 };

/* Makes the schedule of an algorithm that has transforms. */
static bool make_schedule(gpuconv_algorithm algorithm, int64_t taps, int64_t points, gc_schedule *s) {
    return algorithm == GPUCONV_ALGORITHM_MATRIX ? gc_matrix_schedule_make(taps, points, s)
                                                 : gc_schedule_make(algorithm, taps, points, s);
}

gpuconv_status gc_plan_shorten(gpuconv_plan *plan, gpuconv_error *error) {
    /* The shortest transforms of the kernels; direct convolution takes chunks of any multiple of this. Partitions of
     * short transforms are computed in pairs. */
    enum { POINTS_MIN = 512, PAIRED_POINTS_MAX = 8192, DIRECT_STEP = 512 };
    gc_schedule *s = &plan->schedule;
    for (int64_t points = s->transform;; points /= 2) {
        const bool made =
            s->transform == 0 || (points >= POINTS_MIN && make_schedule(s->algorithm, s->taps, points, s));
        const bool paired = s->algorithm == GPUCONV_ALGORITHM_PARTITIONED && points <= PAIRED_POINTS_MAX;
        const int64_t step = s->transform == 0 ? DIRECT_STEP : paired ? 2 * s->hop : s->hop;
        if (made && step <= plan->chunk_most) {
            plan->chunk = gc_max(step, gc_min(plan->chunk, plan->chunk_most) / step * step);
            plan->slots = (int)gc_min(plan->slots, GC_BOUNDED_SLOTS);
            return GPUCONV_OK;
        }
        if (!made || s->transform == 0) {
            plan->bytes = 0; /* memory is not the reason */
            return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                           "a response of %lld frames is too long for %s on a GPU within the latency asked for",
                           (long long)s->taps, gpuconv_algorithm_name(s->algorithm));
        }
    }
}

/* Fills the plan for one algorithm. */
static gpuconv_status plan_algorithm(gpuconv_plan *plan, gpuconv_algorithm algorithm, const gpuconv_config *config,
                                     gpuconv_error *error) {
    gpuconv_config considered = *config;
    const bool cuda = plan->backend->id == GPUCONV_BACKEND_CUDA;
    if (cuda)
        considered.frames = gc_min(config->frames, cuda_long_input);
    gpuconv_status status = plan->backend->plan(plan, algorithm, &considered, error);
    if (!status && cuda && plan->chunk_most && !(status = gc_plan_shorten(plan, error))) {
        const gc_costs costs = gc_costs_of_cuda(plan->device.name, plan->device.multiprocessors);
        const double frames = (double)(config->frames < 0 ? cuda_long_input : considered.frames);
        plan->predicted += frames / (double)plan->chunk * CHUNK_LAUNCHES * costs.seconds[GC_COST_CUDA_LAUNCH];
    }
    if (!status && considered.frames < config->frames)
        plan->predicted *= (double)config->frames / (double)considered.frames;
    return status;
}

/* Returns the seconds by which the algorithms of one backend are ranked. */
static double cost_of(const gpuconv_plan *plan) {
    return plan->cost > 0 ? plan->cost : plan->predicted;
}

/* Appends the density of a matrix to the reason, from 4 channels on: what a choice of the algorithm matrix rests on. */
static void add_density(gpuconv_plan *plan) {
    const size_t used = strlen(plan->reason);
    if (plan->products < 2 * (int64_t)(plan->ir->inputs + plan->ir->outputs))
        return;
    gc_format(plan->reason + used, sizeof plan->reason - used, "; %d routes of %lld, density %.0f %%", plan->ir->routes,
              (long long)plan->products, 100.0 * plan->ir->routes / (double)plan->products);
}

/* Fills the plan for the fastest algorithm of one backend, or for the configured one, and writes plan->reason. Where no
 * algorithm fits, *error has the reason of the one that needs the least memory, else of the last one. */
static gpuconv_status choose_algorithm(gpuconv_plan *plan, const gc_backend *backend, const gpuconv_config *config,
                                       gpuconv_error *error) {
    gpuconv_status status;
    if (config->algorithm) {
        snprintf(plan->reason, sizeof plan->reason, "%s was requested", gpuconv_algorithm_name(config->algorithm));
        return plan_algorithm(plan, config->algorithm, config, error);
    }
    gpuconv_plan best = {.cost = HUGE_VAL};
    gpuconv_error reason = {0};
    char alternatives[128] = "";
    double seconds[GC_ALGORITHMS], least = HUGE_VAL;
    for (int a = GPUCONV_ALGORITHM_DIRECT; a < GC_ALGORITHMS; a++) {
        seconds[a] = HUGE_VAL;
        gpuconv_error refused = {0};
        plan->bytes = 0;
        status = plan_algorithm(plan, (gpuconv_algorithm)a, config, &refused);
        if (status == GPUCONV_ERROR_MEMORY)
            return gc_fail(error, status, "%s", refused.message);
        if (status) {
            if (plan->bytes > 0 ? plan->bytes < least : !(least < HUGE_VAL))
                reason = refused;
            least = plan->bytes > 0 ? fmin(least, plan->bytes) : least;
            continue;
        }
        seconds[a] = plan->predicted;
        if (cost_of(plan) < best.cost) {
            best.schedule = plan->schedule;
            best.chunk = plan->chunk;
            best.slots = plan->slots;
            best.predicted = plan->predicted;
            best.cost = cost_of(plan);
            best.bytes = plan->bytes;
        }
    }
    if (!(best.cost < HUGE_VAL))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s", reason.message);
    plan->schedule = best.schedule;
    plan->chunk = best.chunk;
    plan->slots = best.slots;
    plan->predicted = best.predicted;
    plan->cost = best.cost;
    plan->bytes = best.bytes;
    for (int a = GPUCONV_ALGORITHM_DIRECT; a < GC_ALGORITHMS; a++) {
        size_t used = strlen(alternatives);
        if (a != (int)best.schedule.algorithm && seconds[a] < HUGE_VAL)
            gc_format(alternatives + used, sizeof alternatives - used, "%s %.3g s for %s",
                      *alternatives ? " and" : ", against", seconds[a], gpuconv_algorithm_name((gpuconv_algorithm)a));
    }
    gc_costs costs = backend->id == GPUCONV_BACKEND_CPU
                         ? gc_costs_of_cpu(plan->device.name)
                         : gc_costs_of_cuda(plan->device.name, plan->device.multiprocessors);
    gc_format(plan->reason, sizeof plan->reason, "%.3g s predicted%s%s", best.predicted,
              *costs.cpu || *costs.cuda ? " by the calibration" : "", alternatives);
    add_density(plan);
    return GPUCONV_OK;
}

/* Makes the plan of one backend. start: starts the device and plans with the memory that is free; else with all that
 * the device has. */
static gpuconv_status plan_backend(const gc_backend *backend, const gpuconv_ir *ir, const gpuconv_config *config,
                                   bool start, gpuconv_plan **plan, gpuconv_error *error) {
    if (!backend)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "this build has no CUDA backend");
    gpuconv_plan *made = new_plan(ir, config);
    if (!made)
        return gc_fail_memory(error, "the plan");
    made->backend = backend;
    gpuconv_status status = backend->probe(config, &made->device, error);
    if (!status && start && backend->free_memory)
        status = backend->free_memory(&made->device, error);
    if (!status)
        status = choose_algorithm(made, backend, config, error);
    if (status) {
        gpuconv_plan_free(made);
        return status;
    }
    *plan = made;
    return GPUCONV_OK;
}

/* Replaces the CPU's plan by a GPU's if the GPU is faster, its initialisation included. Starts the GPU only if it is
 * faster with all of its memory; less of it may be free. */
static void prefer_gpu(const gc_backend *gpu, const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan) {
    gpuconv_plan *cpu = *plan, *whole = NULL, *cuda = NULL;
    gpuconv_error reason = {0};
    size_t used = strlen(cpu->reason);
    /* The name of the GPU is unknown before it is probed: use the start-up time that was measured on this machine, or
     * the built-in one. */
    double start = gc_costs_of_cpu(cpu->device.name).seconds[GC_COST_CUDA_START];
    if (!(start > 0))
        start = gc_costs_of_cuda("", 1).seconds[GC_COST_CUDA_START];
    if (cpu->predicted < start) {
        snprintf(cpu->reason + used, sizeof cpu->reason - used, "; the job is shorter than the start-up of a GPU");
        return;
    }
    gpuconv_status status = plan_backend(gpu, ir, config, false, &whole, &reason);
    double seconds = status ? HUGE_VAL : whole->predicted + start;
    gpuconv_plan_free(whole);
    if (!status && seconds < cpu->predicted) {
        status = plan_backend(gpu, ir, config, true, &cuda, &reason);
        seconds = status ? HUGE_VAL : cuda->predicted + start;
    }
    if (status) {
        snprintf(cpu->note, sizeof cpu->note, "running on the CPU: %.200s", reason.message);
    } else if (seconds < cpu->predicted) {
        *plan = cuda;
        gpuconv_plan_free(cpu);
    } else {
        gc_format(cpu->reason + used, sizeof cpu->reason - used, "; the GPU would take %.3g s with its start-up",
                  seconds);
        gpuconv_plan_free(cuda);
    }
}

/* Does what gpuconv_plan_new does, for a configuration of this version. */
static gpuconv_status make_plan(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                gpuconv_error *error) {
    gpuconv_status status = check_config(config, error);
    if (status)
        return status;
    const gc_backend_tables *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (config->backend == GPUCONV_BACKEND_CUDA)
        return plan_backend(gpu ? gpu->convolver : NULL, ir, config, true, plan, error);
    status = plan_backend(gc_backend_find(GPUCONV_BACKEND_CPU)->convolver, ir, config, true, plan, error);
    /* In a build without CUDA, running on the CPU is no fallback: the plan gets no note. */
    if (!status && config->backend == GPUCONV_BACKEND_AUTO && gpu)
        prefer_gpu(gpu->convolver, ir, config, plan);
    return status;
}

gpuconv_status gpuconv_plan_new(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                gpuconv_error *error) {
    gpuconv_config read;
    if (!gc_begin(plan, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = gc_config_read(config, &read, error);
    return status ? status : make_plan(ir, &read, plan, error);
}

gpuconv_plan *gc_plan_hold(const gpuconv_plan *plan) {
    gpuconv_plan *held = (gpuconv_plan *)plan; /* only the reference count changes */
    atomic_fetch_add(&held->references, 1);
    return held;
}

void gpuconv_plan_free(gpuconv_plan *plan) {
    if (!plan || atomic_fetch_sub(&plan->references, 1) != 1)
        return;
    gpuconv_ir_free(plan->ir);
    free(plan);
}

gpuconv_backend gpuconv_plan_backend(const gpuconv_plan *plan) {
    return plan ? plan->backend->id : GPUCONV_BACKEND_AUTO;
}

gpuconv_algorithm gpuconv_plan_algorithm(const gpuconv_plan *plan) {
    return plan ? plan->schedule.algorithm : GPUCONV_ALGORITHM_AUTO;
}

const char *gpuconv_plan_device(const gpuconv_plan *plan) {
    return plan ? plan->device.name : "";
}

const char *gpuconv_plan_reason(const gpuconv_plan *plan) {
    return plan ? plan->reason : "";
}

const char *gpuconv_plan_note(const gpuconv_plan *plan) {
    return plan ? plan->note : "";
}

int gpuconv_plan_threads(const gpuconv_plan *plan) {
    return plan ? plan->device.threads : 0;
}

int64_t gpuconv_plan_chunk(const gpuconv_plan *plan) {
    return plan ? plan->chunk : 0;
}

int64_t gpuconv_plan_latency(const gpuconv_plan *plan) {
    return plan ? (plan->slots - 1) * plan->chunk : 0;
}

int64_t gpuconv_plan_transform(const gpuconv_plan *plan) {
    return plan ? plan->schedule.transform : 0;
}

int64_t gpuconv_plan_hop(const gpuconv_plan *plan) {
    return plan ? plan->schedule.hop : 0;
}

int64_t gpuconv_plan_partitions(const gpuconv_plan *plan) {
    return plan ? plan->schedule.partitions : 0;
}
