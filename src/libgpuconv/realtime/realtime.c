/*
 * What is played through: a response that sounds, and those before it that ring out.
 *
 * An exchange comes through a mailbox, which holds the newest one. The callback takes it up into an empty voice, fades
 * its input in and the old voice's input out, and lets the old one ring until its response has passed; then it retires
 * the voice. Workers do the voices' tails and free retired ones: each marks the voice it is at, and a voice is freed
 * only when nobody is.
 *
 *      voice     empty -> sounding -> ringing -> retired -> empty
 */
#include "realtime.h"
#include "gpu_tail.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/engine/backends.h"
#include "libgpuconv/ir/object.h"
#include "stage_convolver.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VOICES = 4, CHUNK = 1024, THREADS_MOST = 64, BLOCK_MOST = 65536, LATENCY_MOST = 1 << 20 };

enum { EMPTY, SOUNDING, RINGING, RETIRED };

typedef struct voice {
    _Atomic(gc_rt_convolver *) convolver;
    _Atomic int state, visitors; /* visitors: workers that look at it */
    /* the callback's: */
    int64_t left;          /* ringing: frames until it is silent */
    int64_t hush, hushing; /* it must go: frames of its own fading, and how many there are in all; 0: none */
    bool fading;           /* its input is being faded, in or out */
} voice;

struct gpuconv_realtime {
    gpuconv_realtime_config config;
    _Atomic bool freewheel;
    int inputs, outputs, threads;
    voice voice[VOICES];
    _Atomic(gc_rt_convolver *) next; /* the mailbox */
    _Atomic int64_t next_fade;
    _Atomic int64_t missed;
    _Atomic bool quit;
    gc_rt_far far; /* where tails go; given up once it was too late too often */
    _Atomic bool given_up;
    _Atomic bool on_gpu;  /* the voice that sounds */
    _Atomic int64_t lead; /* of its response */
    pthread_t rescuer;    /* brings the CPU's tail in */
    bool rescuing;
    pthread_t thread[THREADS_MOST];
    struct timespec pause;
    char plan[256];
    /* the callback's: */
    int sounding;
    int64_t fade, faded; /* of an exchange: its frames, and how many have passed */
    float *scratch;      /* (inputs + outputs) x CHUNK */
    float *from[GC_MAX_CHANNELS], *to[GC_MAX_CHANNELS];
};

static const double rescue_seconds = 0.1;

/* Prepares a convolver for an exchange: on the CPU once the GPU was given up. MEMORY, DEVICE. */
static gpuconv_status make_convolver(gpuconv_realtime *r, const gpuconv_ir *ir, gc_rt_convolver **made,
                                     gpuconv_error *error) {
    const gc_rt_far nowhere = {NULL, -1};
    return gc_rt_convolver_new(ir, r->config.block, r->config.rate, atomic_load(&r->given_up) ? &nowhere : &r->far,
                               made, error);
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

/* Frees a retired voice that nobody looks at any more. */
static void sweep(voice *v) {
    int retired = RETIRED;
    if (atomic_load(&v->state) != RETIRED || !atomic_load(&v->convolver))
        return;
    gc_rt_convolver *old = atomic_exchange(&v->convolver, NULL);
    while (atomic_load(&v->visitors) > 0) { /* those who came before it was taken away */
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
    gc_rt_convolver_free(old);
    atomic_compare_exchange_strong(&v->state, &retired, EMPTY);
}

static bool visit(voice *v) {
    atomic_fetch_add(&v->visitors, 1);
    gc_rt_convolver *c = atomic_load(&v->convolver);
    bool did = c && atomic_load(&v->state) != RETIRED && gc_rt_convolver_work(c);
    atomic_fetch_sub(&v->visitors, 1);
    return did;
}

/* Returns the response of the voice that sounds where its tail was given up, held for the caller; else NULL. */
static gpuconv_ir *lost_response(gpuconv_realtime *r) {
    gpuconv_ir *ir = NULL;
    for (int i = 0; i < VOICES && !ir; i++) {
        voice *v = &r->voice[i];
        atomic_fetch_add(&v->visitors, 1);
        gc_rt_convolver *c = atomic_load(&v->convolver);
        if (c && atomic_load(&v->state) == SOUNDING && gc_rt_convolver_lost(c))
            ir = gc_ir_hold(gc_rt_convolver_ir(c));
        atomic_fetch_sub(&v->visitors, 1);
    }
    return ir;
}

/* Exchanges the response that lost its tail for the same one on the CPU. A response that waits in the mailbox comes
 * instead of it: it may have been prepared for the GPU, so it is prepared again. A response that is put into the
 * mailbox meanwhile is newer and stays. Without memory everything remains as it is. */
static void *rescue(void *argument) {
    gpuconv_realtime *r = argument;
    gc_rt_convolver *waiting = atomic_exchange(&r->next, NULL), *put = waiting, *made, *none = NULL;
    gpuconv_ir *ir = waiting ? gc_ir_hold(gc_rt_convolver_ir(waiting)) : lost_response(r);
    if (ir && make_convolver(r, ir, &made, NULL) == GPUCONV_OK) {
        if (!waiting)
            atomic_store(&r->next_fade, (int64_t)(rescue_seconds * r->config.rate));
        gc_rt_convolver_free(waiting);
        put = made;
    }
    if (put && !atomic_compare_exchange_strong(&r->next, &none, put))
        gc_rt_convolver_free(put);
    gpuconv_ir_free(ir);
    return NULL;
}

/* One of the workers looks whether the GPU was given up. */
static void watch(gpuconv_realtime *r) {
    if (!r->far.backend || atomic_load(&r->given_up))
        return;
    for (int i = 0; i < VOICES; i++) {
        voice *v = &r->voice[i];
        atomic_fetch_add(&v->visitors, 1);
        gc_rt_convolver *c = atomic_load(&v->convolver);
        bool lost = c && atomic_load(&v->state) == SOUNDING && gc_rt_convolver_lost(c);
        atomic_fetch_sub(&v->visitors, 1);
        if (lost) {
            atomic_store(&r->given_up, true);
            r->rescuing = pthread_create(&r->rescuer, NULL, rescue, r) == 0;
            return;
        }
    }
}

static void *work(void *argument) {
    gpuconv_realtime *r = argument;
    gc_flush_subnormals();
    while (!atomic_load(&r->quit)) {
        bool did = false;
        for (int i = 0; i < VOICES; i++)
            did = visit(&r->voice[i]) || did;
        if (did)
            continue;
        if (pthread_equal(pthread_self(), r->thread[0])) {
            for (int i = 0; i < VOICES; i++)
                sweep(&r->voice[i]);
            watch(r);
        }
        nanosleep(&r->pause, NULL);
    }
    return NULL;
}

/* ---- The callback ------------------------------------------------------------------------------------------------ */

static void retire(voice *v) {
    atomic_store(&v->state, RETIRED);
}

/* Takes up an exchange, unless one is under way. Without an empty voice the one that rings longest is hushed first. */
static void look_for_exchange(gpuconv_realtime *r) {
    if (r->faded < r->fade || !atomic_load_explicit(&r->next, memory_order_acquire))
        return;
    int empty = -1, oldest = -1;
    for (int i = 0; i < VOICES; i++) {
        voice *v = &r->voice[i];
        if (atomic_load(&v->state) == EMPTY)
            empty = i;
        if (atomic_load(&v->state) == RINGING && (oldest < 0 || v->left < r->voice[oldest].left))
            oldest = i;
    }
    if (empty < 0) {
        voice *v = &r->voice[oldest < 0 ? 0 : oldest];
        if (oldest >= 0 && !v->hushing)
            v->hush = v->hushing = gc_max(64, atomic_load(&r->next_fade));
        return;
    }
    gc_rt_convolver *taken = atomic_exchange(&r->next, NULL);
    if (!taken) /* another thread has just taken it out to replace it */
        return;
    voice *old = &r->voice[r->sounding], *v = &r->voice[empty];
    r->fade = atomic_load(&r->next_fade);
    r->faded = 0;
    atomic_store(&v->convolver, taken);
    v->hush = v->hushing = 0;
    v->fading = old->fading = r->fade > 0;
    old->left = gpuconv_ir_frames(gc_rt_convolver_ir(atomic_load(&old->convolver)));
    atomic_store(&old->state, RINGING);
    atomic_store(&v->state, SOUNDING);
    atomic_store_explicit(&r->on_gpu, gc_rt_convolver_far(atomic_load(&v->convolver)), memory_order_relaxed);
    atomic_store_explicit(&r->lead, gpuconv_ir_lead(gc_rt_convolver_ir(atomic_load(&v->convolver))),
                          memory_order_relaxed);
    r->sounding = empty;
}

/* A voice's input: as it is, faded, or nothing. NULL: nothing. */
static const float *const *input_for(gpuconv_realtime *r, const voice *v, bool sounds, int64_t n) {
    if (!v->fading)
        return sounds ? (const float *const *)r->from : NULL;
    float **faded = r->to;
    for (int c = 0; c < r->inputs; c++) {
        faded[c] = r->scratch + (int64_t)c * CHUNK;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = r->faded + i + 1;
            float in = at < r->fade ? (float)at / (float)r->fade : 1.0f;
            faded[c][i] = r->from[c][i] * (sounds ? in : 1.0f - in);
        }
    }
    return (const float *const *)faded;
}

/* A voice that must go, its output fading away. */
static int64_t hush(gpuconv_realtime *r, voice *v, float *const *out, int64_t n, const float *const *in) {
    float *alone[GC_MAX_CHANNELS];
    for (int c = 0; c < r->outputs; c++) {
        alone[c] = r->scratch + (int64_t)(r->inputs + c) * CHUNK;
        memset(alone[c], 0, (size_t)n * sizeof(float));
    }
    int64_t missed = gc_rt_convolver_process(atomic_load(&v->convolver), in, alone, n,
                                             atomic_load_explicit(&r->freewheel, memory_order_relaxed));
    for (int c = 0; c < r->outputs; c++)
        for (int64_t i = 0; i < n && i < v->hush; i++)
            out[c][i] += alone[c][i] * ((float)(v->hush - i) / (float)v->hushing);
    v->hush -= gc_min(n, v->hush);
    return missed;
}

/* Up to CHUNK frames; r->from has the input. */
static int64_t play(gpuconv_realtime *r, float *const *out, int64_t n) {
    int64_t missed = 0;
    look_for_exchange(r);
    for (int i = 0; i < VOICES; i++) {
        voice *v = &r->voice[i];
        int state = atomic_load(&v->state);
        if (state != SOUNDING && state != RINGING)
            continue;
        const float *const *in = input_for(r, v, state == SOUNDING, n);
        if (v->hushing)
            missed += hush(r, v, out, n, in);
        else
            missed += gc_rt_convolver_process(atomic_load(&v->convolver), in, out, n,
                                              atomic_load_explicit(&r->freewheel, memory_order_relaxed));
        if (state == RINGING && !v->fading)
            v->left -= n;
        if ((state == RINGING && v->left <= 0) || (v->hushing && v->hush == 0))
            retire(v);
    }
    if (r->faded < r->fade) {
        r->faded = gc_min(r->fade, r->faded + n);
        for (int i = 0; i < VOICES && r->faded == r->fade; i++)
            r->voice[i].fading = false;
    }
    return missed;
}

void gpuconv_realtime_process(gpuconv_realtime *r, const float *const *in, float *const *out, int64_t frames) {
    uint64_t before = gc_save_and_flush_subnormals();
    int64_t missed = 0;
    float *to[GC_MAX_CHANNELS];
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = gc_min(CHUNK, frames - at);
        /* in may be out: what is played next is copied away first. */
        for (int c = 0; c < r->inputs; c++) {
            r->from[c] = r->scratch + (int64_t)(r->inputs + r->outputs + c) * CHUNK;
            memcpy(r->from[c], in[c] + at, (size_t)n * sizeof(float));
        }
        for (int c = 0; c < r->outputs; c++) {
            to[c] = out[c] + at;
            memset(to[c], 0, (size_t)n * sizeof(float));
        }
        missed += play(r, to, n);
    }
    if (missed)
        atomic_fetch_add_explicit(&r->missed, missed, memory_order_relaxed);
    gc_restore_subnormals(before);
}

/* ---- Everybody else ---------------------------------------------------------------------------------------------- */

static void describe(gpuconv_realtime *r, const gc_rt_convolver *c) {
    const gc_rt_schedule *s = gc_rt_convolver_schedule(c);
    size_t used = (size_t)snprintf(r->plan, sizeof r->plan, "the first %lld frames directly", (long long)s->head);
    for (int i = 0; i < s->stages && used < sizeof r->plan; i++)
        used += (size_t)snprintf(r->plan + used, sizeof r->plan - used, ", %lld x %lld",
                                 (long long)s->stage[i].partitions, (long long)s->stage[i].hop);
    if (gc_rt_convolver_far(c) && used < sizeof r->plan)
        used += (size_t)snprintf(r->plan + used, sizeof r->plan - used, ", from %d frames on the GPU", GC_RT_LEAD);
    if (used < sizeof r->plan)
        (void)snprintf(r->plan + used, sizeof r->plan - used, "; %.2g %% of a core predicted",
                       100 * s->load * r->config.rate);
}

/* Nanoseconds between two looks for work: half the shortest hop that workers do, and often enough for an exchange. */
static long pause_of(const gc_rt_schedule *s, double rate) {
    double pause = 10e-3;
    for (int i = 0; i < s->stages; i++)
        if (!s->stage[i].here && (double)s->stage[i].hop / rate / 2 < pause)
            pause = (double)s->stage[i].hop / rate / 2;
    return (long)(1e9 * pause);
}

void gpuconv_realtime_free(gpuconv_realtime *r) {
    if (!r)
        return;
    atomic_store(&r->quit, true);
    for (int i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    if (r->rescuing)
        pthread_join(r->rescuer, NULL);
    for (int i = 0; i < VOICES; i++)
        gc_rt_convolver_free(atomic_load(&r->voice[i].convolver));
    gc_rt_convolver_free(atomic_load(&r->next));
    free(r->scratch);
    free(r);
}

/* The response as it is played: later by the latency that was granted. */
static gpuconv_status delayed(const gpuconv_realtime *r, const gpuconv_ir *ir, gpuconv_ir **played,
                              gpuconv_error *error) {
    if (r->config.latency > 0)
        return gpuconv_ir_delay(ir, r->config.latency, played, error);
    *played = gc_ir_hold(ir);
    return GPUCONV_OK;
}

gpuconv_status gc_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                               const gc_filter_bank_backend *backend, gpuconv_realtime **realtime,
                               gpuconv_error *error) {
    *realtime = NULL;
    gpuconv_realtime_config chosen = *config;
    chosen.rate = chosen.rate != 0 ? chosen.rate : 48000;
    chosen.block = chosen.block ? chosen.block : 256;
    chosen.threads = chosen.threads ? chosen.threads : 1;
    if (!ir->routed)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is routed before it is played");
    if (!gc_ir_rate_fits(chosen.rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a rate is 1 to %d Hz, or 0 for 48000, not %g", GC_MAX_RATE,
                       chosen.rate);
    if (chosen.device < -1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a device number is 0 or more, or -1, not %d", chosen.device);
    if (chosen.block < 1 || chosen.block > BLOCK_MOST || chosen.threads < 1 || chosen.threads > THREADS_MOST ||
        chosen.latency < 0 || chosen.latency > LATENCY_MOST)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a block is 1 to %d frames, threads 1 to %d, latency 0 to %d frames, not %d, %d and %lld",
                       BLOCK_MOST, THREADS_MOST, LATENCY_MOST, chosen.block, chosen.threads, (long long)chosen.latency);
    gpuconv_realtime *r = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "a response that plays");
    r->config = chosen;
    r->far = (gc_rt_far){backend, chosen.device};
    atomic_init(&r->freewheel, chosen.freewheel);
    r->inputs = ir->inputs;
    r->outputs = ir->outputs;
    gc_rt_convolver *c = NULL;
    gpuconv_ir *played = NULL;
    gpuconv_status status = delayed(r, ir, &played, error);
    if (!status)
        status = gc_rt_convolver_new(played, chosen.block, chosen.rate, &r->far, &c, error);
    gpuconv_ir_free(played);
    r->scratch = gc_calloc((int64_t)(2 * r->inputs + r->outputs) * CHUNK, sizeof *r->scratch);
    if (!status && !r->scratch)
        status = gc_fail_memory(error, "a response that plays");
    atomic_store(&r->voice[0].convolver, c);
    atomic_store(&r->voice[0].state, SOUNDING);
    if (!status) {
        atomic_store(&r->on_gpu, gc_rt_convolver_far(c));
        atomic_store(&r->lead, gpuconv_ir_lead(ir));
        r->pause.tv_nsec = pause_of(gc_rt_convolver_schedule(c), chosen.rate);
        describe(r, c);
    }
    for (; !status && r->threads < chosen.threads; r->threads++)
        if (pthread_create(&r->thread[r->threads], NULL, work, r) != 0) {
            status = gc_fail(error, GPUCONV_ERROR_MEMORY, "no thread to be had for the tail");
            break;
        }
    if (status) {
        gpuconv_realtime_free(r);
        return status;
    }
    *realtime = r;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_realtime_new(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                                    gpuconv_realtime **realtime, gpuconv_error *error) {
    *realtime = NULL;
    const gc_filter_bank_backend *backend = NULL;
    if ((unsigned)config->backend > GPUCONV_BACKEND_CUDA)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such backend: %d", (int)config->backend);
    if (config->backend == GPUCONV_BACKEND_CUDA) {
        const gc_backend_tables *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA);
        if (!gpu)
            return gc_backend_fail_missing(error);
        backend = gpu->filter_bank;
    }
    return gc_realtime_new(ir, config, backend, realtime, error);
}

gpuconv_status gpuconv_realtime_swap(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    if (!(seconds >= 0 && seconds <= 60))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "an exchange takes 0 to 60 seconds, not %g", seconds);
    if (!ir->routed)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is routed before it is played");
    if (ir->inputs != r->inputs || ir->outputs != r->outputs)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%d to %d channels cannot take the place of %d to %d", ir->inputs,
                       ir->outputs, r->inputs, r->outputs);
    gpuconv_ir *played;
    gc_rt_convolver *made;
    gpuconv_status status = delayed(r, ir, &played, error);
    if (!status)
        status = make_convolver(r, played, &made, error);
    if (!status) {
        atomic_store(&r->next_fade, (int64_t)(seconds * r->config.rate));
        gc_rt_convolver_free(atomic_exchange(&r->next, made)); /* the one before, if the callback has not taken it */
    }
    gpuconv_ir_free(played);
    return status;
}

gpuconv_backend gpuconv_realtime_backend(const gpuconv_realtime *r) {
    return atomic_load_explicit(&r->on_gpu, memory_order_relaxed) ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU;
}

int64_t gpuconv_realtime_latency(const gpuconv_realtime *r) {
    return atomic_load_explicit(&r->lead, memory_order_relaxed) + r->config.latency;
}

void gpuconv_realtime_set_freewheel(gpuconv_realtime *r, bool freewheel) {
    atomic_store_explicit(&r->freewheel, freewheel, memory_order_relaxed);
}

int64_t gpuconv_realtime_late_blocks(const gpuconv_realtime *r) {
    return atomic_load_explicit(&r->missed, memory_order_relaxed);
}

const char *gpuconv_realtime_plan(const gpuconv_realtime *r) {
    return r->plan;
}
