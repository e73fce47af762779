/* The audio callback: it starts exchanges, applies fades and sums the voices. It never locks, allocates or waits,
 * unless freewheeling. */
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "realtime_state.h"

#include <string.h>

enum { MIN_FADE_OUT = 64 };

/* Moves the pending convolver into an empty voice, unless a crossfade is in progress. If no voice is empty, it starts
 * to fade out the one with the least decay left, and the exchange waits. */
static void start_exchange(gpuconv_realtime *r) {
    if (r->fade_done < r->fade_length || !atomic_load_explicit(&r->pending, memory_order_acquire))
        return;
    int empty = -1, oldest = -1;
    for (int i = 0; i < GC_RT_VOICES; i++) {
        gc_voice *v = &r->voice[i];
        if (atomic_load(&v->state) == GC_VOICE_EMPTY)
            empty = i;
        if (atomic_load(&v->state) == GC_VOICE_DECAYING && (oldest < 0 || v->decay_left < r->voice[oldest].decay_left))
            oldest = i;
    }
    if (empty < 0) {
        gc_voice *v = &r->voice[oldest < 0 ? 0 : oldest];
        if (oldest >= 0 && !v->fade_out_length)
            v->fade_out_left = v->fade_out_length = gc_max(MIN_FADE_OUT, atomic_load(&r->pending_fade));
        return;
    }
    gc_rt_convolver *taken = atomic_exchange(&r->pending, NULL);
    if (!taken) /* another thread is replacing it at this moment */
        return;
    gc_voice *old = &r->voice[r->active], *v = &r->voice[empty];
    r->fade_length = atomic_load(&r->pending_fade);
    r->fade_done = 0;
    atomic_store(&v->convolver, taken);
    v->fade_out_left = v->fade_out_length = 0;
    v->input_fading = old->input_fading = r->fade_length > 0;
    old->decay_left = gpuconv_ir_frames(gc_rt_convolver_ir(atomic_load(&old->convolver)));
    atomic_store(&old->state, GC_VOICE_DECAYING);
    atomic_store(&v->state, GC_VOICE_ACTIVE);
    atomic_store_explicit(&r->on_gpu, gc_rt_convolver_has_gpu_tail(taken), memory_order_relaxed);
    atomic_store_explicit(&r->lead, gpuconv_ir_lead(gc_rt_convolver_ir(taken)), memory_order_relaxed);
    r->active = empty;
}

/* Returns a voice's input: the chunk unchanged if it is active, NULL (silence) if it decays, or a faded copy. */
static const float *const *voice_input(gpuconv_realtime *r, const gc_voice *v, bool active, int64_t n) {
    if (!v->input_fading)
        return active ? (const float *const *)r->input : NULL;
    for (int c = 0; c < r->inputs; c++) {
        r->faded[c] = r->scratch + (int64_t)c * GC_RT_CHUNK;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = r->fade_done + i + 1;
            float in = at < r->fade_length ? (float)at / (float)r->fade_length : 1.0f;
            r->faded[c][i] = r->input[c][i] * (active ? in : 1.0f - in);
        }
    }
    return (const float *const *)r->faded;
}

/* Adds the output of a voice that is stopped early, with its fade-out. Returns the number of late blocks. */
static int64_t add_fading_out(gpuconv_realtime *r, gc_voice *v, float *const *out, int64_t n, const float *const *in) {
    float *voice_out[GC_MAX_CHANNELS];
    for (int c = 0; c < r->outputs; c++) {
        voice_out[c] = r->scratch + (int64_t)(r->inputs + c) * GC_RT_CHUNK;
        memset(voice_out[c], 0, (size_t)n * sizeof(float));
    }
    int64_t late = gc_rt_convolver_process(atomic_load(&v->convolver), in, voice_out, n,
                                           atomic_load_explicit(&r->freewheel, memory_order_relaxed));
    for (int c = 0; c < r->outputs; c++)
        for (int64_t i = 0; i < n && i < v->fade_out_left; i++)
            out[c][i] += voice_out[c][i] * ((float)(v->fade_out_left - i) / (float)v->fade_out_length);
    v->fade_out_left -= gc_min(n, v->fade_out_left);
    return late;
}

/* Adds the output of all voices for a chunk of n frames (at most GC_RT_CHUNK), whose input is in r->input. Returns the
 * number of late blocks. */
static int64_t process_chunk(gpuconv_realtime *r, float *const *out, int64_t n) {
    int64_t late = 0;
    start_exchange(r);
    for (int i = 0; i < GC_RT_VOICES; i++) {
        gc_voice *v = &r->voice[i];
        int state = atomic_load(&v->state);
        if (state != GC_VOICE_ACTIVE && state != GC_VOICE_DECAYING)
            continue;
        const float *const *in = voice_input(r, v, state == GC_VOICE_ACTIVE, n);
        if (v->fade_out_length)
            late += add_fading_out(r, v, out, n, in);
        else
            late += gc_rt_convolver_process(atomic_load(&v->convolver), in, out, n,
                                            atomic_load_explicit(&r->freewheel, memory_order_relaxed));
        if (state == GC_VOICE_DECAYING && !v->input_fading)
            v->decay_left -= n;
        if ((state == GC_VOICE_DECAYING && v->decay_left <= 0) || (v->fade_out_length && v->fade_out_left == 0))
            atomic_store(&v->state, GC_VOICE_RETIRED);
    }
    if (r->fade_done < r->fade_length) {
        r->fade_done = gc_min(r->fade_length, r->fade_done + n);
        for (int i = 0; i < GC_RT_VOICES && r->fade_done == r->fade_length; i++)
            r->voice[i].input_fading = false;
    }
    return late;
}

void gpuconv_realtime_process(gpuconv_realtime *r, const float *const *in, float *const *out, int64_t frames) {
    uint64_t saved = gc_save_and_flush_subnormals();
    int64_t late = 0;
    float *to[GC_MAX_CHANNELS];
    for (int64_t at = 0; at < frames; at += GC_RT_CHUNK) {
        int64_t n = gc_min(GC_RT_CHUNK, frames - at);
        /* `in` and `out` may be the same buffers: the input is copied before the output is cleared. */
        for (int c = 0; c < r->inputs; c++) {
            r->input[c] = r->scratch + (int64_t)(r->inputs + r->outputs + c) * GC_RT_CHUNK;
            memcpy(r->input[c], in[c] + at, (size_t)n * sizeof(float));
        }
        for (int c = 0; c < r->outputs; c++) {
            to[c] = out[c] + at;
            memset(to[c], 0, (size_t)n * sizeof(float));
        }
        late += process_chunk(r, to, n);
    }
    if (late)
        atomic_fetch_add_explicit(&r->late_blocks, late, memory_order_relaxed);
    gc_restore_subnormals(saved);
}
