/*
 * Plans: configuration, choice of the backend, and what a plan says about itself (search.c compares the algorithms of a
 * backend).
 *
 * A GPU is probed only if the CPU would take longer than the GPU takes to initialise, so short jobs never load the
 * driver.
 */
#include "backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
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
    static const char *const names[GC_BACKENDS] = {
        [GPUCONV_BACKEND_AUTO] = "auto", [GPUCONV_BACKEND_CPU] = "cpu", [GPUCONV_BACKEND_CUDA] = "cuda"};
    return (int)backend >= 0 && (int)backend < GC_BACKENDS ? names[backend] : "unknown";
}

const char *gpuconv_algorithm_name(gpuconv_algorithm algorithm) {
    const char *name = algorithm == GPUCONV_ALGORITHM_AUTO ? "auto" : gc_algorithm_name(algorithm);
    return name ? name : "unknown";
}

/* Shorter chunks than half of this have no whole block of the shortest transforms. */
enum { LEAST_LATENCY = 1024 };

static gpuconv_status check_config(const gpuconv_config *config, gpuconv_error *error) {
    if ((int)config->backend < 0 || (int)config->backend >= GC_BACKENDS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown backend %d", (int)config->backend);
    if (config->algorithm != GPUCONV_ALGORITHM_AUTO && !gc_algorithm_name(config->algorithm))
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

/* Writes the reason of a choice: its time, the times of the other algorithms, and from 4 channels on the density of the
 * matrix, on which a choice of dense matrices rests. */
static void write_reason(gpuconv_plan *plan, const gc_problem *p, const gc_costs *costs, const double *seconds) {
    const gc_algorithm *const *row = plan->backend->algorithms;
    const char *joint = ", against";
    gc_format(plan->reason, sizeof plan->reason, "%.3g s predicted%s", plan->choice.predicted,
              *costs->cpu || *costs->cuda ? " by the calibration" : "");
    for (int i = 0; row[i]; i++)
        if (row[i] != plan->choice.algorithm && seconds[i] < HUGE_VAL) {
            gc_append(plan->reason, sizeof plan->reason, "%s %.3g s for %s", joint, seconds[i], row[i]->name);
            joint = " and";
        }
    if (p->stream.products >= 2 * (int64_t)(p->stream.ir->inputs + p->stream.ir->outputs))
        gc_append(plan->reason, sizeof plan->reason, "; %d routes of %lld, density %.0f %%", p->stream.ir->routes,
                  (long long)p->stream.products, 100.0 * p->stream.ir->routes / (double)p->stream.products);
}

gpuconv_status gc_plan_choose(gpuconv_plan *plan, const gc_backend *backend, const gc_problem *p,
                              const gpuconv_config *config, gpuconv_error *error) {
    const gc_algorithm *only[] = {NULL, NULL}, *const *row = backend->algorithms;
    double seconds[GC_ALGORITHMS_MAX] = {0};
    plan->backend = backend;
    const gc_costs costs = backend->costs(&plan->device);
    for (; config->algorithm && *row && !*only; row++)
        if ((*row)->kind == p->kind && (*row)->id == config->algorithm)
            *only = *row;
    if (config->algorithm && !*only)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s has no algorithm %s", gpuconv_backend_name(backend->id),
                       gpuconv_algorithm_name(config->algorithm));
    const gpuconv_status status = gc_algorithms_choose(*only ? only : backend->algorithms, p, &plan->device, &costs,
                                                       &plan->choice, seconds, error);
    if (*only)
        snprintf(plan->reason, sizeof plan->reason, "%s was requested", (*only)->name);
    else if (!status)
        write_reason(plan, p, &costs, seconds);
    return status;
}

/* Makes the plan for one backend. backend: NULL if there is none. start: starts the device and plans with the
 * memory that is free. */
static gpuconv_status plan_backend(const gc_backend *backend, const gc_problem *problem, const gpuconv_config *config,
                                   bool start, gpuconv_plan **plan, gpuconv_error *error) {
    if (!backend)
        return gc_backend_fail_missing(GPUCONV_ERROR_DEVICE, error);
    gpuconv_plan *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "the plan");
    atomic_init(&made->references, 1);
    made->ir = gc_ir_hold(problem->stream.ir);
    gpuconv_status status = backend->probe(config, &made->device, error);
    if (!status && start && backend->free_memory)
        status = backend->free_memory(&made->device, error);
    if (!status)
        status = gc_plan_choose(made, backend, problem, config, error);
    if (status) {
        gpuconv_plan_free(made);
        return status;
    }
    *plan = made;
    return GPUCONV_OK;
}

/* Replaces the CPU's plan by a GPU's if the GPU is faster, its initialisation included. Starts the GPU only if it is
 * faster with all of its memory; less of it may be free. */
static void prefer_gpu(const gc_problem *problem, const gpuconv_config *config, gpuconv_plan **plan) {
    gpuconv_plan *cpu = *plan, *whole = NULL, *cuda = NULL;
    gpuconv_error reason = {0};
    /* The name of the GPU is unknown before it is probed: use the start-up time that was measured on this machine, or
     * the built-in one. */
    const double start = gc_costs_of_cpu(cpu->device.name).seconds[GC_COST_CUDA_START];
    if (cpu->choice.predicted < start) {
        gc_append(cpu->reason, sizeof cpu->reason, "; the job is shorter than the start-up of a GPU");
        return;
    }
    const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
    gpuconv_status status = plan_backend(gpu, problem, config, false, &whole, &reason);
    double seconds = status ? HUGE_VAL : whole->choice.predicted + start;
    gpuconv_plan_free(whole);
    if (!status && seconds < cpu->choice.predicted) {
        status = plan_backend(gpu, problem, config, true, &cuda, &reason);
        seconds = status ? HUGE_VAL : cuda->choice.predicted + start;
    }
    if (!gpu) { /* a note is for a GPU that is there and cannot be used */
        gc_append(cpu->reason, sizeof cpu->reason, "; %.200s", reason.message);
    } else if (status) {
        snprintf(cpu->note, sizeof cpu->note, "running on the CPU: %.200s", reason.message);
    } else if (seconds < cpu->choice.predicted) {
        *plan = cuda;
        gpuconv_plan_free(cpu);
    } else {
        gc_append(cpu->reason, sizeof cpu->reason, "; the GPU would take %.3g s with its start-up", seconds);
        gpuconv_plan_free(cuda);
    }
}

/* Plans for the backend that the configuration names, or for the faster one. */
static gpuconv_status choose_backend(const gc_problem *problem, const gpuconv_config *config, gpuconv_plan **plan,
                                     gpuconv_error *error) {
    const gpuconv_backend first = config->backend == GPUCONV_BACKEND_CUDA ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU;
    const gpuconv_status status = plan_backend(gc_backend_find(first), problem, config, true, plan, error);
    if (!status && config->backend == GPUCONV_BACKEND_AUTO)
        prefer_gpu(problem, config, plan);
    return status;
}

/* Does what gpuconv_plan_new does, for a configuration of this version. */
static gpuconv_status make_plan(const gpuconv_ir *ir, const gpuconv_config *config, gpuconv_plan **plan,
                                gpuconv_error *error) {
    gc_problem problem;
    gpuconv_status status = check_config(config, error);
    if (status)
        return status;
    const int64_t latency = config->latency_frames ? config->latency_frames : config->frames < 0 ? stream_latency : -1;
    status = gc_problem_init(&problem, ir, config->frames, latency) ? choose_backend(&problem, config, plan, error)
                                                                    : gc_fail_memory(error, "the plan");
    gc_problem_free(&problem);
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

/* Defines a function of the interface that reads a plan; without a plan it returns `none`. */
#define GETTER(type, name, none, value)                                                                                \
    type name(const gpuconv_plan *plan) {                                                                              \
        return plan ? (value) : (none);                                                                                \
    }

GETTER(gpuconv_backend, gpuconv_plan_backend, GPUCONV_BACKEND_AUTO, plan->backend->id)
GETTER(gpuconv_algorithm, gpuconv_plan_algorithm, GPUCONV_ALGORITHM_AUTO, plan->choice.algorithm->id)
GETTER(const char *, gpuconv_plan_device, "", plan->device.name)
GETTER(const char *, gpuconv_plan_reason, "", plan->reason)
GETTER(const char *, gpuconv_plan_note, "", plan->note)
GETTER(int, gpuconv_plan_threads, 0, plan->device.threads)
GETTER(int64_t, gpuconv_plan_chunk, 0, plan->choice.chunk)
GETTER(int64_t, gpuconv_plan_latency, 0, (plan->choice.slots - 1) * plan->choice.chunk)
GETTER(int64_t, gpuconv_plan_transform, 0, plan->choice.schedule.transform)
GETTER(int64_t, gpuconv_plan_hop, 0, plan->choice.schedule.hop)
GETTER(int64_t, gpuconv_plan_partitions, 0, plan->choice.schedule.partitions)
