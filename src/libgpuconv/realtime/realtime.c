/*
 * Convolution in real time with exchanges of the response: voices, each with a convolver, and the mailboxes through
 * which they come.
 *
 * One voice plays the whole response. A layer changes some of its routes: its voice plays, for these routes alone, the
 * new response less the one in the whole response, so that the sum of both is the new response and no other route is
 * touched. An exchange of the whole response ends all layers.
 *
 * The control functions put a new convolver into the mailbox of the whole response or of a layer,
 * which holds only the newest one. The callback moves it into an empty voice, crossfades the input from the active
 * voice to it, and lets the previous voice decay until its response has ended; then it retires that voice. Worker
 * threads compute the tails of all voices. The first worker frees retired voices: each worker counts itself in
 * `readers` while it uses a voice, and a convolver is freed only at zero readers.
 *
 *      voice     empty -> active -> decaying -> retired -> empty
 *
 * Whole responses are numbered. A layer carries the number of the response that it changes and is used with no other.
 *
 * An exchange of routes that a layer already has goes to that layer. Where layers would hold more than half of the
 * routes, or none is free, all present routes become a new whole response.
 *
 * Threads: the control functions may be called from any thread and hold `control`; the callback
 * (gpuconv_realtime_process) takes no lock, allocates nothing and never waits, unless freewheeling; the workers compute
 * tails, free retired voices, and replace a failed tail on a GPU by one on the CPU.
 */
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/ir/object.h"
#include "stage_convolver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GC_RT_MAX_THREADS = 64 };

/* Part 0 of what plays is the whole response, the other parts are layers. Voices of whole responses come first, then
 * those of layers: at most one active and one decaying for each. */
enum { GC_RT_LAYERS = 16, GC_RT_PARTS = 1 + GC_RT_LAYERS };
enum { GC_RT_WHOLE_VOICES = 4, GC_RT_VOICES = GC_RT_WHOLE_VOICES + 2 * GC_RT_LAYERS };

enum { GC_VOICE_EMPTY, GC_VOICE_ACTIVE, GC_VOICE_DECAYING, GC_VOICE_RETIRED };

typedef struct gc_voice {
    _Atomic(gc_rt_convolver *) convolver;
    _Atomic int state;
    _Atomic int readers; /* threads that use the convolver and are not the callback */
    /* Only the callback uses these: */
    int64_t decay_left;      /* frames until a decaying voice is silent */
    int64_t fade_out_length; /* frames of the fade of a voice that is stopped early; 0: it is not */
    int64_t fade_out_left;   /* frames of that fade that remain */
    int64_t fade_length;     /* frames in which its input is faded in (active) or out (decaying) */
    int64_t fade_done;
} gc_voice;

struct gpuconv_realtime {
    gpuconv_realtime_config config;
    int inputs, outputs;
    char plan[256];
    _Atomic bool freewheel;
    _Atomic int64_t late_blocks;
    _Atomic bool on_gpu;  /* the active voice's tail is on the GPU */
    _Atomic int64_t lead; /* of the active voice's response */
    _Atomic double rate;  /* of the samples in Hz: that of the whole response posted last */
    gc_voice voice[GC_RT_VOICES];

    _Atomic(gc_rt_convolver *) pending[GC_RT_PARTS]; /* mailboxes */
    _Atomic int64_t newest_fade;                     /* frames of the exchange that was posted last */

    /* Used by the control functions, under `control`: */
    pthread_mutex_t control;
    gpuconv_ir *response[GC_RT_PARTS]; /* posted last: the whole response, and the present taps of the routes that a
                                          layer changes; NULL: the layer is free */
    int64_t number;                    /* of the whole response */

    /* Worker threads: */
    pthread_t thread[GC_RT_MAX_THREADS];
    int threads;
    _Atomic long poll_ns; /* between two polls of a worker */
    _Atomic bool quit;
    gc_gpu_target gpu;
    _Atomic bool gpu_failed;   /* new convolvers are made for the CPU */
    pthread_t fallback_thread; /* replaces a failed GPU tail by a CPU one */
    bool fallback_started;

    /* Only the callback uses these: */
    int active[GC_RT_PARTS];       /* index of the voice of each part; -1: none */
    int64_t active_number;         /* of the whole response */
    float *scratch;                /* (2 x inputs + outputs) x GC_RT_CHUNK */
    float *input[GC_MAX_CHANNELS]; /* the current chunk */
    float *faded[GC_MAX_CHANNELS]; /* the current chunk with a fade applied */
};

/* ---- Exchanges --------------------------------------------------------------------------------------------------- */

/* Frees what the control functions hold of a part. */
static void free_part(gpuconv_realtime *r, int part) {
    gc_rt_convolver_free(atomic_exchange(&r->pending[part], NULL));
    gpuconv_ir_free(r->response[part]);
    r->response[part] = NULL;
}

/* Frees what the control functions hold. */
static void free_control(gpuconv_realtime *r) {
    for (int part = 0; part < GC_RT_PARTS; part++)
        free_part(r, part);
    pthread_mutex_destroy(&r->control);
}

/* Shortens the interval between two polls of the workers to half the shortest hop that they compute. */
static void poll_for(gpuconv_realtime *r, const gc_rt_convolver *c) {
    for (int i = 0; i < c->stages; i++) {
        const long ns = (long)(1e9 * (double)c->stage[i].level.hop / r->rate / 2);
        if (!c->stage[i].level.at_once && ns < atomic_load(&r->poll_ns))
            atomic_store(&r->poll_ns, ns);
    }
}

/* Makes a convolver of a whole response, on the GPU if one was asked for and has not failed, or of a layer, which is
 * computed on the CPU: its routes are few. Returns MEMORY, DEVICE. */
static gpuconv_status make_convolver(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer, gc_rt_convolver **convolver,
                                     gpuconv_error *error) {
    const gc_gpu_target none = {NULL, -1};
    const gc_rt_calls calls = {r->config.block, r->rate, layer ? 1.0 / GC_RT_LAYERS : 1};
    return gc_rt_convolver_new(ir, &calls, layer || atomic_load(&r->gpu_failed) ? &none : &r->gpu, convolver, error);
}

/* Makes a convolver of the response delayed by the configured latency. Returns MEMORY, DEVICE. */
static gpuconv_status make_delayed(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer, gc_rt_convolver **convolver,
                                   gpuconv_error *error) {
    gpuconv_ir *delayed;
    if (r->config.latency == 0)
        return make_convolver(r, ir, layer, convolver, error);
    gpuconv_status status = gpuconv_ir_delay(ir, r->config.latency, &delayed, error);
    if (status)
        return status;
    status = make_convolver(r, delayed, layer, convolver, error);
    gpuconv_ir_free(delayed);
    return status;
}

/* Puts a convolver into the mailbox of a part, in place of one that the callback has not taken. Takes ownership of
 * `ir`. */
static void post(gpuconv_realtime *r, int part, gpuconv_ir *ir, gc_rt_convolver *made, double seconds) {
    gpuconv_ir_free(r->response[part]);
    r->response[part] = ir;
    made->terms = (gc_rt_terms){(int64_t)(seconds * r->rate), r->number};
    poll_for(r, made);
    atomic_store_explicit(&r->newest_fade, made->terms.fade, memory_order_relaxed);
    gc_rt_convolver_free(atomic_exchange(&r->pending[part], made));
}

/* Exchanges the whole response; the layers end with the previous one. Under `control`. */
static gpuconv_status exchange_whole(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gc_rt_convolver *made;
    r->rate = ir->rate;
    gpuconv_status status = make_delayed(r, ir, false, &made, error);
    if (status)
        return status;
    r->number++;
    post(r, 0, gc_ir_hold(ir), made, seconds);
    for (int layer = 1; layer < GC_RT_PARTS; layer++)
        free_part(r, layer);
    return GPUCONV_OK;
}

/* ---- Sets of routes ---------------------------------------------------------------------------------------------- */

static int compare_places(const gc_route *a, const gc_route *b) {
    return a->output != b->output ? (a->output < b->output ? -1 : 1) : (a->input > b->input) - (a->input < b->input);
}

/* Responses whose routes are merged: a route of a later one replaces the same route of an earlier one. */
typedef struct merge {
    int count;
    const gpuconv_ir *from[GC_RT_PARTS + 1];
    int next[GC_RT_PARTS + 1]; /* their first routes that are not taken yet */
    const gpuconv_ir *owner;   /* of the route that was taken last */
} merge;

/* Takes the next route, in order of outputs, then of inputs. Returns NULL after the last one, and begins anew. */
static const gc_route *take_route(merge *m) {
    const gc_route *first = NULL;
    for (int i = 0; i < m->count; i++) {
        const gc_route *route = &m->from[i]->route[m->next[i]];
        if (m->next[i] < m->from[i]->routes && (!first || compare_places(route, first) <= 0)) {
            first = route;
            m->owner = m->from[i];
        }
    }
    for (int i = 0; i < m->count; i++)
        if (!first)
            m->next[i] = 0;
        else if (m->next[i] < m->from[i]->routes && compare_places(&m->from[i]->route[m->next[i]], first) == 0)
            m->next[i]++;
    return first;
}

/* Returns the number of routes, and their most frames. */
static int count_routes(merge *m, int64_t *frames) {
    int routes = 0;
    *frames = 0;
    for (; take_route(m); routes++)
        *frames = gc_max(*frames, m->owner->frames);
    return routes;
}

/* Makes one response of all routes. Returns MEMORY. */
static gpuconv_status make_merged(merge *m, gpuconv_ir **merged, gpuconv_error *error) {
    const gpuconv_ir *whole = m->from[0];
    int64_t frames;
    const int routes = count_routes(m, &frames);
    gpuconv_status status = gc_ir_check_memory(routes, (double)frames, 0, error);
    gpuconv_ir *made = status ? NULL : gc_ir_blank(whole->inputs, whole->outputs, routes, routes, frames, whole->rate);
    if (!status && !made)
        status = gc_fail_memory(error, "the exchange of routes");
    for (int r = 0; r < routes && made; r++) {
        const gc_route *route = take_route(m);
        made->route[r] = (gc_route){route->input, route->output, r};
        memcpy(made->taps + r * frames, gc_ir_plane(m->owner, route->plane),
               (size_t)m->owner->frames * sizeof *made->taps);
    }
    if (made) {
        made->lead = whole->lead;
        made->routed = true;
    }
    *merged = made;
    return status;
}

/* Returns the layer for the routes of `ir`: the one that has some of them, or a free one; -1 if several layers have
 * some, none is free, or layers would hold more than half of the routes. */
static int choose_layer(const gpuconv_realtime *r, const gpuconv_ir *ir) {
    int chosen = -1, vacant = -1, sharing = 0;
    int64_t routes = ir->routes, frames;
    for (int l = GC_RT_PARTS - 1; l > 0; l--) {
        if (!r->response[l]) {
            vacant = l;
            continue;
        }
        merge both = {.count = 2, .from = {r->response[l], ir}};
        const int added = count_routes(&both, &frames) - ir->routes;
        routes += added;
        if (added < r->response[l]->routes) {
            sharing++;
            chosen = l;
        }
    }
    if (sharing > 1 || 2 * routes > r->response[0]->routes)
        return -1;
    return sharing ? chosen : vacant;
}

/* ---- Exchange by a layer ----------------------------------------------------------------------------------------- */

/* Numbers the channels that are marked from 0 on; channel[n] gets the channel of number n. Returns their count. */
static int number_channels(int *mark, int channels, int *channel) {
    int count = 0;
    for (int i = 0; i < channels; i++)
        if (mark[i]) {
            channel[count] = i;
            mark[i] = count++;
        }
    return count;
}

/* Makes the response of a layer, with its own channels only: the taps of `layer` less those of the whole response.
 * `map` gets the caller's channels of its inputs, then, from map[r->inputs] on, of its outputs. Returns NULL without
 * memory. */
static gpuconv_ir *make_difference(const gpuconv_realtime *r, const gpuconv_ir *layer, int *map) {
    const gpuconv_ir *whole = r->response[0];
    const gc_route *old = whole->route, *end = old + whole->routes;
    int *mark = gc_calloc((int64_t)r->inputs + r->outputs, sizeof *mark);
    const int64_t frames = gc_max(whole->frames, layer->frames);
    if (!mark)
        return NULL;
    for (int i = 0; i < layer->routes; i++)
        mark[layer->route[i].input] = mark[r->inputs + layer->route[i].output] = 1;
    const int inputs = number_channels(mark, r->inputs, map);
    const int outputs = number_channels(mark + r->inputs, r->outputs, map + r->inputs);
    gpuconv_ir *made = gc_ir_blank(inputs, outputs, layer->routes, layer->routes, frames, whole->rate);
    for (int i = 0; made && i < layer->routes; i++) {
        const gc_route *route = &layer->route[i];
        float *to = made->taps + i * frames;
        made->route[i] = (gc_route){mark[route->input], mark[r->inputs + route->output], i};
        memcpy(to, gc_ir_plane(layer, route->plane), (size_t)layer->frames * sizeof *to);
        while (old < end && compare_places(old, route) < 0)
            old++;
        for (int64_t k = 0; old < end && compare_places(old, route) == 0 && k < whole->frames; k++)
            to[k] -= gc_ir_plane(whole, old->plane)[k];
    }
    if (made)
        made->routed = true;
    free(mark);
    return made;
}

/* Makes the convolver of a layer. Returns MEMORY. */
static gpuconv_status make_layer(gpuconv_realtime *r, const gpuconv_ir *layer, gc_rt_convolver **made,
                                 gpuconv_error *error) {
    int *map = gc_calloc((int64_t)r->inputs + r->outputs, sizeof *map);
    gpuconv_ir *difference = map ? make_difference(r, layer, map) : NULL;
    gpuconv_status status =
        difference ? make_delayed(r, difference, true, made, error) : gc_fail_memory(error, "the exchange of routes");
    if (!status) {
        memcpy((*made)->channel, map, (size_t)difference->inputs * sizeof *map);
        memcpy((*made)->channel + difference->inputs, map + r->inputs, (size_t)difference->outputs * sizeof *map);
    }
    gpuconv_ir_free(difference);
    free(map);
    return status;
}

static gpuconv_status exchange_layer(gpuconv_realtime *r, int l, const gpuconv_ir *ir, double seconds,
                                     gpuconv_error *error) {
    gc_rt_convolver *made;
    gpuconv_ir *layer = r->response[l] ? NULL : gc_ir_hold(ir);
    merge both = {.count = 2, .from = {r->response[l], ir}};
    gpuconv_status status = layer ? GPUCONV_OK : make_merged(&both, &layer, error);
    if (!status)
        status = make_layer(r, layer, &made, error);
    if (status) {
        gpuconv_ir_free(layer);
        return status;
    }
    post(r, l, layer, made, seconds);
    return GPUCONV_OK;
}

/* Exchanges the whole response for one of all present routes: those of `ir`, of the layers and of the whole response.
 */
static gpuconv_status exchange_merged(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gpuconv_ir *merged;
    merge all = {0};
    for (int part = 0; part < GC_RT_PARTS; part++)
        if (r->response[part])
            all.from[all.count++] = r->response[part];
    all.from[all.count++] = ir;
    gpuconv_status status = make_merged(&all, &merged, error);
    if (status)
        return status;
    status = exchange_whole(r, merged, seconds, error);
    gpuconv_ir_free(merged);
    return status;
}

/* ---- Public functions -------------------------------------------------------------------------------------------- */

/* Checks what both exchanges need. Returns ARGUMENT, TOPOLOGY. */
static gpuconv_status check(const gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    if (!r || !ir)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "an exchange needs a convolver and a response, not NULL");
    if (!(seconds >= 0 && seconds <= 60))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a crossfade takes 0 to 60 seconds, not %g", seconds);
    if (!ir->routed)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response is routed before it is played");
    if (ir->inputs != r->inputs || ir->outputs != r->outputs)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "a response from %d to %d channels cannot replace one from %d to %d", ir->inputs, ir->outputs,
                       r->inputs, r->outputs);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_realtime_swap(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gpuconv_status status = check(r, ir, seconds, error);
    if (status)
        return status;
    pthread_mutex_lock(&r->control);
    status = exchange_whole(r, ir, seconds, error);
    pthread_mutex_unlock(&r->control);
    return status;
}

gpuconv_status gpuconv_realtime_swap_routes(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds,
                                            gpuconv_error *error) {
    gpuconv_status status = check(r, ir, seconds, error);
    if (status || ir->routes == 0)
        return status;
    pthread_mutex_lock(&r->control);
    const int l = choose_layer(r, ir);
    status = l >= 0 ? exchange_layer(r, l, ir, seconds, error) : exchange_merged(r, ir, seconds, error);
    pthread_mutex_unlock(&r->control);
    return status;
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

static const double fallback_fade_seconds = 0.1;

/* Takes the convolver out of a voice. Returns it when no worker uses it any more. */
static gc_rt_convolver *take_convolver(gc_voice *v) {
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
    gc_rt_convolver_free(take_convolver(v));
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
    gc_rt_terms terms = {(int64_t)(fallback_fade_seconds * r->rate), 0};
    gpuconv_ir *ir = waiting ? gc_ir_hold(waiting->response) : find_failed_response(r, &terms.response);
    if (ir && make_convolver(r, ir, false, &made, NULL) == GPUCONV_OK) {
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

/* Runs a worker thread until `quit` is set; `realtime` is the gpuconv_realtime. */
static void *run_worker(void *realtime) {
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

/* ---- The audio callback ------------------------------------------------------------------------------------------ */

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
            gc_rt_convolver *c = take_convolver(v);
            gc_rt_convolver_reset(c);
            atomic_store(&v->convolver, c);
        }
    atomic_store(&r->late_blocks, 0);
    pthread_mutex_unlock(&r->control);
}

/* ---- Creation and queries ---------------------------------------------------------------------------------------- */

enum { MAX_BLOCK = 65536, MAX_LATENCY = 1 << 20, LONGEST_POLL = 10000000 /* ns */ };

/* Writes the sentence that gpuconv_realtime_plan returns. */
static void describe_plan(gpuconv_realtime *r, const gc_rt_convolver *c) {
    const gc_levels *l = &c->plan.levels;
    (void)snprintf(r->plan, sizeof r->plan, "%sthe first %lld frames %s", l->dense ? "matrix products, " : "",
                   (long long)l->level[0].partitions, c->plan.schedule.transform ? "in blocks" : "directly");
    for (int i = 1; i < l->count; i++)
        gc_append(r->plan, sizeof r->plan, ", %lld x %lld", (long long)l->level[i].partitions,
                  (long long)l->level[i].hop);
    if (c->tail)
        gc_append(r->plan, sizeof r->plan, ", from %d frames on the GPU", GC_GPU_TAIL_OFFSET);
    gc_append(r->plan, sizeof r->plan, "; %.2g %% of a core predicted", 100 * c->plan.predicted * r->rate);
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
    free_control(r);
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
    gpuconv_status status = make_delayed(r, ir, false, &c, error);
    if (status)
        return status;
    r->response[0] = gc_ir_hold(ir);
    atomic_store(&r->voice[0].convolver, c);
    atomic_store(&r->voice[0].state, GC_VOICE_ACTIVE);
    atomic_store(&r->on_gpu, c->tail != NULL);
    atomic_store(&r->lead, gpuconv_ir_lead(ir));
    poll_for(r, c);
    describe_plan(r, c);
    r->scratch = gc_calloc((int64_t)(2 * r->inputs + r->outputs) * GC_RT_CHUNK, sizeof *r->scratch);
    return r->scratch ? GPUCONV_OK : gc_fail_memory(error, "a real-time convolver");
}

/* Does what gpuconv_realtime_new does for a configuration that was read, with the tail on `backend`; NULL: everything
 * on the CPU. */
static gpuconv_status new_realtime(const gpuconv_ir *ir, const gpuconv_realtime_config *config,
                                   const gc_backend *backend, gpuconv_realtime **realtime, gpuconv_error *error) {
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
    r->rate = complete.rate;
    atomic_init(&r->poll_ns, LONGEST_POLL);
    for (int part = 1; part < GC_RT_PARTS; part++)
        r->active[part] = -1;
    r->gpu = (gc_gpu_target){backend, complete.device};
    atomic_init(&r->freewheel, complete.freewheel);
    r->inputs = ir->inputs;
    r->outputs = ir->outputs;
    status = make_first_voice(r, ir, error);
    while (!status && r->threads < complete.threads) {
        int code = pthread_create(&r->thread[r->threads], NULL, run_worker, r);
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
    const gc_backend *backend = NULL;
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
        backend = gc_backend_find(GPUCONV_BACKEND_CUDA);
        if (!backend)
            return gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
    }
    return new_realtime(ir, &config, backend, realtime, error);
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
