/* The audio callback: it starts exchanges, applies fades and sums the voices. It never locks, allocates or waits,
 * unless freewheeling. And the reset, which takes its place for a moment. */
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/finite.h"
#include "realtime_state.h"

#include <string.h>

enum { MIN_FADE_OUT = 64 };

/* Returns an empty voice of the `count` from `first` on. If none is empty, returns -1 and fades out the one with the
 * least decay left; the exchange waits. */
static int find_voice(gpuconv_realtime *r, int first, int count) {
    int oldest = -1;
    for (int i = first; i < first + count; i++) {
        const int state = atomic_load(&r->voice[i].state);
        if (state == GC_VOICE_EMPTY)
            return i;
        if (state == GC_VOICE_DECAYING && (oldest < 0 || r->voice[i].decay_left < r->voice[oldest].decay_left))
            oldest = i;
    }
    if (oldest >= 0 && !r->voice[oldest].fade_out_length)
        r->voice[oldest].fade_out_left = r->voice[oldest].fade_out_length =
            gc_max(MIN_FADE_OUT, atomic_load_explicit(&r->newest_fade, memory_order_relaxed));
    return -1;
}

static bool is_fading(const gc_voice *v) {
    return v->fade_done < v->fade_length;
}

/* Fades in a convolver in an empty voice. */
static void begin_voice(gc_voice *v, gc_rt_convolver *c) {
    v->fade_length = c->terms.fade;
    v->fade_done = 0;
    v->fade_out_left = v->fade_out_length = 0;
    atomic_store(&v->convolver, c);
    atomic_store(&v->state, GC_VOICE_ACTIVE);
}

/* Fades out the input of an active voice, which then decays. */
static void end_voice(gc_voice *v, int64_t fade) {
    v->fade_length = fade;
    v->fade_done = 0;
    v->decay_left = gpuconv_ir_frames(atomic_load(&v->convolver)->response);
    atomic_store(&v->state, GC_VOICE_DECAYING);
}

/* Returns whether an exchange of a part has to wait: for a crossfade, or, of a layer, for an exchange of the whole
 * response. An exchange of the whole response waits for the crossfades of all parts. */
static bool must_wait(const gpuconv_realtime *r, int part) {
    for (int other = 0; other < GC_RT_PARTS; other++)
        if ((part == 0 || other == 0 || other == part) && r->active[other] >= 0 &&
            is_fading(&r->voice[r->active[other]]))
            return true;
    return part > 0 && atomic_load_explicit(&r->pending[0], memory_order_acquire);
}

/* Moves the pending convolver of a part into a voice; a newer whole response ends all layers. A convolver that is too
 * old is retired at once, so that the workers free it. */
static void exchange(gpuconv_realtime *r, int part) {
    gc_rt_convolver *empty = NULL;
    if (!atomic_load_explicit(&r->pending[part], memory_order_acquire) || must_wait(r, part))
        return;
    const int at = part == 0 ? find_voice(r, 0, GC_RT_WHOLE_VOICES)
                             : find_voice(r, GC_RT_WHOLE_VOICES, GC_RT_VOICES - GC_RT_WHOLE_VOICES);
    gc_rt_convolver *taken = at < 0 ? NULL : atomic_exchange(&r->pending[part], NULL);
    if (!taken) /* no voice is free, or another thread is replacing the convolver at this moment */
        return;
    const gc_rt_terms terms = taken->terms;
    const bool newer = terms.response > r->active_number;
    if (part > 0 && newer && atomic_compare_exchange_strong(&r->pending[part], &empty, taken))
        return; /* back in the mailbox: the response that it changes has yet to be taken */
    if (terms.response < r->active_number || (part > 0 && newer)) {
        atomic_store(&r->voice[at].convolver, taken);
        atomic_store(&r->voice[at].state, GC_VOICE_RETIRED);
        return;
    }
    for (int other = 0; other < GC_RT_PARTS; other++)
        if (r->active[other] >= 0 && (other == part || newer)) {
            end_voice(&r->voice[r->active[other]], terms.fade);
            r->active[other] = -1;
        }
    begin_voice(&r->voice[at], taken);
    r->active[part] = at;
    if (part == 0) {
        atomic_store_explicit(&r->on_gpu, taken->tail != NULL, memory_order_relaxed);
        atomic_store_explicit(&r->lead, gpuconv_ir_lead(taken->response), memory_order_relaxed);
        r->active_number = terms.response;
    }
}

/* Returns a voice's input: the chunk unchanged if it is active, NULL (silence) if it decays, or a faded copy. */
static const float *const *voice_input(gpuconv_realtime *r, const gc_voice *v, bool active, int64_t n) {
    const gc_rt_convolver *convolver = atomic_load(&v->convolver);
    if (!is_fading(v))
        return active ? (const float *const *)r->input : NULL;
    for (int k = 0; k < convolver->response->inputs; k++) {
        const int c = convolver->channel[k];
        r->faded[c] = r->scratch + (int64_t)c * GC_RT_CHUNK;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = v->fade_done + i + 1;
            float in = at < v->fade_length ? (float)at / (float)v->fade_length : 1.0f;
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
    for (int part = 0; part < GC_RT_PARTS; part++)
        exchange(r, part);
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
        if (state == GC_VOICE_DECAYING && !is_fading(v))
            v->decay_left -= n;
        v->fade_done = gc_min(v->fade_length, v->fade_done + n);
        if ((state == GC_VOICE_DECAYING && v->decay_left <= 0) || (v->fade_out_length && v->fade_out_left == 0))
            atomic_store(&v->state, GC_VOICE_RETIRED);
    }
    return late;
}

void gpuconv_realtime_process(gpuconv_realtime *r, const float *const *in, float *const *out, int64_t frames) {
    if (!r || !in || !out)
        return;
    uint64_t saved = gc_save_and_flush_subnormals();
    int64_t late = 0, first;
    float *to[GC_MAX_CHANNELS];
    for (int64_t at = 0; at < frames; at += GC_RT_CHUNK) {
        int64_t n = gc_min(GC_RT_CHUNK, frames - at);
        /* `in` and `out` may be the same buffers: the input is copied before the output is cleared. */
        for (int c = 0; c < r->inputs; c++) {
            r->input[c] = r->scratch + (int64_t)(r->inputs + r->outputs + c) * GC_RT_CHUNK;
            memcpy(r->input[c], in[c] + at, (size_t)n * sizeof(float));
            (void)gc_zero_nonfinite(r->input[c], n, &first);
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

/* ---- Reset ------------------------------------------------------------------------------------------------------- */

/* Ends all crossfades and retires the voices that decay. Returns when the worker has freed them. */
static void end_fades(gpuconv_realtime *r) {
    const struct timespec interval = {0, 100000};
    for (int i = 0; i < GC_RT_VOICES; i++) {
        gc_voice *v = &r->voice[i];
        v->fade_done = v->fade_length;
        v->fade_out_length = 0;
        if (atomic_load(&v->state) == GC_VOICE_DECAYING)
            atomic_store(&v->state, GC_VOICE_RETIRED);
    }
    for (int i = 0; i < GC_RT_VOICES; i++)
        while (atomic_load(&r->voice[i].state) == GC_VOICE_RETIRED)
            nanosleep(&interval, NULL);
}

void gpuconv_realtime_reset(gpuconv_realtime *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->control);
    end_fades(r); /* before an exchange, which waits for fades and for an empty voice */
    for (int part = 0; part < GC_RT_PARTS; part++) {
        exchange(r, part);
        end_fades(r);
    }
    for (int part = 0; part < GC_RT_PARTS; part++)
        if (r->active[part] >= 0) {
            gc_voice *v = &r->voice[r->active[part]];
            gc_rt_convolver *c = gc_voice_take_convolver(v);
            gc_rt_convolver_reset(c);
            atomic_store(&v->convolver, c);
        }
    atomic_store(&r->late_blocks, 0);
    pthread_mutex_unlock(&r->control);
}
