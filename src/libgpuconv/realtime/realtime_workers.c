/* The worker threads: they compute tails, free retired voices, and replace a failed GPU tail by a CPU one. */
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/ir/object.h"
#include "realtime_state.h"

static const double fallback_fade_seconds = 0.1;

gc_rt_convolver *gc_voice_take_convolver(gc_voice *v) {
    const struct timespec interval = {0, 20000};
    gc_rt_convolver *taken = atomic_exchange(&v->convolver, NULL);
    while (atomic_load(&v->readers) > 0) /* they may have loaded the pointer before the exchange */
        nanosleep(&interval, NULL);
    return taken;
}

/* Frees a retired voice once no thread holds a reference to it. */
static void free_retired(gc_voice *v) {
    int retired = GC_VOICE_RETIRED;
    if (atomic_load(&v->state) != GC_VOICE_RETIRED || !atomic_load(&v->convolver))
        return;
    gc_rt_convolver_free(gc_voice_take_convolver(v));
    atomic_compare_exchange_strong(&v->state, &retired, GC_VOICE_EMPTY);
}

/* Computes one block of a voice. Returns false if there was none to compute. */
static bool work_on_voice(gc_voice *v) {
    if (!atomic_load_explicit(&v->convolver, memory_order_relaxed))
        return false;
    atomic_fetch_add(&v->readers, 1);
    gc_rt_convolver *c = atomic_load(&v->convolver);
    bool worked = c && atomic_load(&v->state) != GC_VOICE_RETIRED && gc_rt_convolver_work(c);
    atomic_fetch_sub(&v->readers, 1);
    return worked;
}

/* Returns the active response if its tail on the GPU has failed, else NULL, and its number in *number. The caller frees
 * it. */
static gpuconv_ir *find_failed_response(gpuconv_realtime *r, int64_t *number) {
    gpuconv_ir *ir = NULL;
    for (int i = 0; i < GC_RT_WHOLE_VOICES && !ir; i++) {
        gc_voice *v = &r->voice[i];
        atomic_fetch_add(&v->readers, 1);
        gc_rt_convolver *c = atomic_load(&v->convolver);
        if (c && atomic_load(&v->state) == GC_VOICE_ACTIVE && c->tail && gc_gpu_tail_has_failed(c->tail)) {
            ir = gc_ir_hold(c->response);
            *number = c->terms.response;
        }
        atomic_fetch_sub(&v->readers, 1);
    }
    return ir;
}

/* Replaces the response whose GPU tail has failed by the same one on the CPU. A response that waits in the mailbox
 * takes precedence; it may have been prepared for the GPU, so it is prepared again. A response that is put into the
 * mailbox meanwhile is newer and stays. Without memory nothing changes. */
static void *fall_back_to_cpu(void *argument) {
    gpuconv_realtime *r = argument;
    gc_rt_convolver *waiting = atomic_exchange(&r->pending[0], NULL), *replacement = waiting, *made, *empty = NULL;
    gc_rt_terms terms = {(int64_t)(fallback_fade_seconds * r->config.rate), 0};
    gpuconv_ir *ir = waiting ? gc_ir_hold(waiting->response) : find_failed_response(r, &terms.response);
    if (ir && gc_realtime_make_convolver(r, ir, false, &made, NULL) == GPUCONV_OK) {
        made->terms = waiting ? waiting->terms : terms;
        gc_rt_convolver_free(waiting);
        replacement = made;
    }
    if (replacement && !atomic_compare_exchange_strong(&r->pending[0], &empty, replacement))
        gc_rt_convolver_free(replacement);
    gpuconv_ir_free(ir);
    return NULL;
}

/* Starts the fallback to the CPU once if the active voice's tail on the GPU has failed. */
static void check_gpu_tail(gpuconv_realtime *r) {
    if (!r->gpu.backend || atomic_load(&r->gpu_failed))
        return;
    int64_t number;
    gpuconv_ir *failed = find_failed_response(r, &number);
    if (!failed)
        return;
    gpuconv_ir_free(failed);
    atomic_store(&r->gpu_failed, true);
    r->fallback_started = pthread_create(&r->fallback_thread, NULL, fall_back_to_cpu, r) == 0;
}

void *gc_realtime_run_worker(void *realtime) {
    gpuconv_realtime *r = realtime;
    gc_flush_subnormals();
    while (!atomic_load(&r->quit)) {
        bool worked = false;
        for (int i = 0; i < GC_RT_VOICES; i++)
            worked = work_on_voice(&r->voice[i]) || worked;
        if (worked)
            continue;
        if (pthread_equal(pthread_self(), r->thread[0])) {
            for (int i = 0; i < GC_RT_VOICES; i++)
                free_retired(&r->voice[i]);
            check_gpu_tail(r);
        }
        const struct timespec interval = {0, atomic_load_explicit(&r->poll_ns, memory_order_relaxed)};
        nanosleep(&interval, NULL);
    }
    return NULL;
}
