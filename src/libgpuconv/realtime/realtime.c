/* Real-time convolution: creation and queries. */
#include "realtime.h"

#include "gpu_tail.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/ir/object.h"
#include "realtime_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCK = 65536, MAX_LATENCY = 1 << 20, LONGEST_POLL = 10000000 /* ns */ };

/* Writes the sentence that gpuconv_realtime_plan returns. */
static void describe_plan(gpuconv_realtime *r, const gc_rt_convolver *c) {
    const gc_levels *l = &c->plan.levels;
    size_t used =
        (size_t)snprintf(r->plan, sizeof r->plan, "%sthe first %lld frames %s", l->dense ? "matrix products, " : "",
                         (long long)l->level[0].partitions, c->plan.schedule.transform ? "in blocks" : "directly");
    for (int i = 1; i < l->count && used < sizeof r->plan; i++)
        used += (size_t)snprintf(r->plan + used, sizeof r->plan - used, ", %lld x %lld",
                                 (long long)l->level[i].partitions, (long long)l->level[i].hop);
    if (c->tail && used < sizeof r->plan)
        used +=
            (size_t)snprintf(r->plan + used, sizeof r->plan - used, ", from %d frames on the GPU", GC_GPU_TAIL_OFFSET);
    if (used < sizeof r->plan)
        (void)gc_format(r->plan + used, sizeof r->plan - used, "; %.2g %% of a core predicted",
                        100 * c->plan.predicted * r->config.rate);
}

void gpuconv_realtime_free(gpuconv_realtime *r) {
    if (!r)
        return;
    atomic_store(&r->quit, true);
    for (int i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    if (r->fallback_started)
        pthread_join(r->fallback_thread, NULL);
    for (int i = 0; i < GC_RT_VOICES; i++)
        gc_rt_convolver_free(atomic_load(&r->voice[i].convolver));
    gc_realtime_free_control(r);
    free(r->scratch);
    free(r);
}

/* Replaces zeros in the configuration by the defaults and checks the ranges. Returns ARGUMENT. */
static gpuconv_status complete_config(gpuconv_realtime_config *config, gpuconv_error *error) {
    config->rate = config->rate != 0 ? config->rate : 48000;
    config->block = config->block ? config->block : 256;
    config->threads = config->threads ? config->threads : 1;
    if (!gc_is_rate(config->rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a rate is 1 to %d Hz, or 0 for 48000, not %g", GC_MAX_RATE,
                       config->rate);
    if (config->device < -1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a device number is 0 or more, or -1, not %d", config->device);
    if (config->block < 1 || config->block > MAX_BLOCK || config->threads < 1 || config->threads > GC_RT_MAX_THREADS ||
        config->latency < 0 || config->latency > MAX_LATENCY)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a block is 1 to %d frames, threads 1 to %d, latency 0 to %d frames, not %d, %d and %lld",
                       MAX_BLOCK, GC_RT_MAX_THREADS, MAX_LATENCY, config->block, config->threads,
                       (long long)config->latency);
    return GPUCONV_OK;
}

/* Makes the first voice and the buffers. Returns MEMORY, DEVICE. */
static gpuconv_status make_first_voice(gpuconv_realtime *r, const gpuconv_ir *ir, gpuconv_error *error) {
    gc_rt_convolver *c;
    gpuconv_status status = gc_realtime_make_delayed(r, ir, false, &c, error);
    if (status)
        return status;
    r->response[0] = gc_ir_hold(ir);
    atomic_store(&r->voice[0].convolver, c);
    atomic_store(&r->voice[0].state, GC_VOICE_ACTIVE);
    atomic_store(&r->on_gpu, c->tail != NULL);
    atomic_store(&r->lead, gpuconv_ir_lead(ir));
    gc_realtime_poll_for(r, c);
    describe_plan(r, c);
    r->scratch = gc_calloc((int64_t)(2 * r->inputs + r->outputs) * GC_RT_CHUNK, sizeof *r->scratch);
    return r->scratch ? GPUCONV_OK : gc_fail_memory(error, "a real-time convolver");
}

gpuconv_status gc_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                               const gc_bank_backend *backend, gpuconv_realtime **realtime, gpuconv_error *error) {
    *realtime = NULL;
    gpuconv_realtime_config complete = *config;
    if (!ir->routed)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is routed before it is played");
    gpuconv_status status = complete_config(&complete, error);
    if (status)
        return status;
    gpuconv_realtime *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "a real-time convolver");
    if (pthread_mutex_init(&r->control, NULL) != 0) {
        free(r);
        return gc_fail_memory(error, "a real-time convolver");
    }
    r->config = complete;
    atomic_init(&r->poll_ns, LONGEST_POLL);
    for (int part = 1; part < GC_RT_PARTS; part++)
        r->active[part] = -1;
    r->gpu = (gc_gpu_target){backend, complete.device};
    atomic_init(&r->freewheel, complete.freewheel);
    r->inputs = ir->inputs;
    r->outputs = ir->outputs;
    status = make_first_voice(r, ir, error);
    while (!status && r->threads < complete.threads) {
        int code = pthread_create(&r->thread[r->threads], NULL, gc_realtime_run_worker, r);
        if (code)
            status = gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the tail thread: %s", strerror(code));
        else
            r->threads++;
    }
    if (status) {
        gpuconv_realtime_free(r);
        return status;
    }
    *realtime = r;
    return GPUCONV_OK;
}

void gpuconv_realtime_config_init(gpuconv_realtime_config *config, size_t size) {
    const gpuconv_realtime_config defaults = {0};
    gc_sized_struct_init(config, size, &defaults, sizeof defaults);
}

gpuconv_status gpuconv_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *given,
                                    gpuconv_realtime **realtime, gpuconv_error *error) {
    if (!gc_begin(realtime, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    const gc_bank_backend *backend = NULL;
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    gpuconv_status status =
        gc_sized_struct_read(&(gc_sized_struct){&config, sizeof config, GC_SIZE_UP_TO(gpuconv_realtime_config, latency),
                                                "gpuconv_realtime_config"},
                             given, error);
    if (status)
        return status;
    if ((unsigned)config.backend > GPUCONV_BACKEND_CUDA)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such backend: %d", (int)config.backend);
    if (config.backend == GPUCONV_BACKEND_CUDA) {
        const gc_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
        if (!gpu)
            return gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
        backend = gpu->bank;
    }
    return gc_realtime_new(ir, &config, backend, realtime, error);
}

gpuconv_backend gpuconv_realtime_backend(const gpuconv_realtime *r) {
    if (!r)
        return GPUCONV_BACKEND_AUTO;
    return atomic_load_explicit(&r->on_gpu, memory_order_relaxed) ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU;
}

int64_t gpuconv_realtime_latency(const gpuconv_realtime *r) {
    return r ? atomic_load_explicit(&r->lead, memory_order_relaxed) + r->config.latency : 0;
}

void gpuconv_realtime_set_freewheel(gpuconv_realtime *r, bool freewheel) {
    if (r)
        atomic_store_explicit(&r->freewheel, freewheel, memory_order_relaxed);
}

int64_t gpuconv_realtime_late_blocks(const gpuconv_realtime *r) {
    return r ? atomic_load_explicit(&r->late_blocks, memory_order_relaxed) : 0;
}

const char *gpuconv_realtime_plan(const gpuconv_realtime *r) {
    return r ? r->plan : "";
}
