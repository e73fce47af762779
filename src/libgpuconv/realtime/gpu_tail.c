/* Periods to the bank and back, and the numbers between the thread and the callback. */
#include "gpu_tail.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD = GC_GPU_TAIL_PERIOD, OUT_RING = 4 * GC_RT_LEAD };

static const double patience = 0.2; /* seconds */

struct gc_gpu_tail {
    const gc_filter_bank_backend *backend;
    gc_filter_bank *bank;
    gpuconv_ir *ir;
    gc_rt_input input;
    float *in;  /* routes x PERIOD, pinned */
    float *out; /* outputs x OUT_RING */
    struct timespec pause;
    int64_t late_most; /* frames */
    pthread_t thread;
    bool running;
    _Atomic int64_t published, done; /* frames of input; periods that are ready */
    _Atomic bool quit, lost;
    int64_t late; /* the callback's: frames on end that it went without */
};

static void response(void *context, int channel, float *taps) {
    const gpuconv_ir *ir = context;
    memcpy(taps, gc_ir_plane(ir, ir->route[channel].plane) + GC_RT_LEAD,
           (size_t)(ir->frames - GC_RT_LEAD) * sizeof *taps);
}

static void gather(gc_gpu_tail *r, int64_t period) {
    int64_t from = period * PERIOD & (r->input.length - 1); /* a period never reaches across the ring's end */
    for (int k = 0; k < r->ir->routes; k++)
        memcpy(r->in + (int64_t)k * PERIOD, r->input.ring + r->ir->route[k].input * r->input.stride + from,
               PERIOD * sizeof(float));
}

/* Routes into their outputs, at the frames that they belong to. */
static void spread(gc_gpu_tail *r, int64_t period, const float *from) {
    int64_t at = (period * PERIOD + GC_RT_LEAD) & (OUT_RING - 1);
    for (int o = 0; o < r->ir->outputs; o++)
        memset(r->out + (int64_t)o * OUT_RING + at, 0, PERIOD * sizeof(float));
    for (int k = 0; k < r->ir->routes; k++) {
        float *to = r->out + (int64_t)r->ir->route[k].output * OUT_RING + at;
        for (int i = 0; i < PERIOD; i++)
            to[i] += from[(int64_t)k * PERIOD + i];
    }
}

static void *work(void *argument) {
    gc_gpu_tail *r = argument;
    gc_flush_subnormals();
    while (!atomic_load(&r->quit) && !atomic_load(&r->lost)) {
        int64_t period = atomic_load(&r->done), there = atomic_load(&r->published);
        const float *out;
        gpuconv_error error;
        if (there < (period + 1) * PERIOD) {
            nanosleep(&r->pause, NULL);
            continue;
        }
        /* What was overwritten before it was read cannot be made good. */
        bool good = there - period * PERIOD <= r->input.length - 2 * PERIOD;
        if (good) {
            gather(r, period);
            good = atomic_load(&r->published) - period * PERIOD <= r->input.length - PERIOD &&
                   r->backend->process(r->bank, r->in, &out, &error) == GPUCONV_OK;
        }
        if (good) {
            spread(r, period, out);
            atomic_store(&r->done, period + 1);
        } else {
            atomic_store(&r->lost, true);
        }
    }
    return NULL;
}

void gc_gpu_tail_free(gc_gpu_tail *r) {
    if (!r)
        return;
    atomic_store(&r->quit, true);
    if (r->running)
        pthread_join(r->thread, NULL);
    if (r->bank) {
        r->backend->unpin(r->bank, r->in);
        r->backend->free(r->bank);
    }
    gpuconv_ir_free(r->ir);
    free(r->out);
    free(r);
}

gpuconv_status gc_gpu_tail_new(const gpuconv_ir *ir, double rate, const gc_filter_bank_backend *backend, int device,
                               const gc_rt_input *input, gc_gpu_tail **remote, gpuconv_error *error) {
    *remote = NULL;
    gc_gpu_tail *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "the tail on the GPU");
    r->backend = backend;
    r->ir = gc_ir_hold(ir);
    r->input = *input;
    r->pause.tv_nsec = (long)(1e9 * PERIOD / rate / 4);
    r->late_most = (int64_t)(patience * rate);
    gc_filter_bank_config config = {.channels = ir->routes,
                                    .block = PERIOD,
                                    .taps = ir->frames - GC_RT_LEAD,
                                    .device = device,
                                    .response = response,
                                    .context = r->ir};
    gpuconv_status status = backend->open(&config, &r->bank, error);
    if (!status) {
        r->in = backend->pin(r->bank, (int64_t)ir->routes * PERIOD);
        r->out = gc_calloc((int64_t)ir->outputs * OUT_RING, sizeof *r->out);
        if (!r->in || !r->out)
            status = gc_fail_memory(error, "the tail on the GPU");
    }
    if (!status && pthread_create(&r->thread, NULL, work, r) != 0)
        status = gc_fail(error, GPUCONV_ERROR_MEMORY, "no thread to be had for the tail on the GPU");
    r->running = !status;
    if (status)
        gc_gpu_tail_free(r);
    else
        *remote = r;
    return status;
}

void gc_gpu_tail_publish(gc_gpu_tail *r, int64_t frames) {
    atomic_store_explicit(&r->published, frames, memory_order_release);
}

bool gc_gpu_tail_lost(const gc_gpu_tail *r) {
    return atomic_load_explicit(&r->lost, memory_order_relaxed);
}

int64_t gc_gpu_tail_add(gc_gpu_tail *r, float *const *out, int64_t at, int64_t n, int64_t now, bool freewheel) {
    int64_t first = now - GC_RT_LEAD;
    if (first + n <= 0 || gc_gpu_tail_lost(r)) /* nothing yet; or somebody else is on the way */
        return 0;
    int64_t skip = first < 0 ? -first : 0, wanted = (first + n - 1) / PERIOD + 1;
    while (freewheel && atomic_load_explicit(&r->done, memory_order_acquire) < wanted && !gc_gpu_tail_lost(r)) {
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
    if (atomic_load_explicit(&r->done, memory_order_acquire) < wanted) {
        r->late += n;
        if (r->late > r->late_most)
            atomic_store_explicit(&r->lost, true, memory_order_relaxed);
        return 1;
    }
    r->late = 0;
    for (int o = 0; o < r->ir->outputs; o++) {
        const float *from = r->out + (int64_t)o * OUT_RING;
        float *to = out[o] + at;
        for (int64_t i = skip; i < n; i++)
            to[i] += from[(now + i) & (OUT_RING - 1)];
    }
    return 0;
}
