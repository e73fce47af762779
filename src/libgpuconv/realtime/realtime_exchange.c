/*
 * The control side of a real-time convolution: exchanges of the whole response and of single routes.
 *
 * Routes are exchanged by a layer (realtime_state.h): a convolver of its own for these routes, whose taps are the new
 * ones less those of the whole response. An exchange of routes that a layer already has goes to that layer. Where
 * layers would hold more than half of the routes, or none is free, all present routes become a new whole response.
 */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "realtime_state.h"

#include <stdlib.h>
#include <string.h>

/* Frees what the control functions hold of a part. */
static void free_part(gpuconv_realtime *r, int part) {
    gc_rt_convolver_free(atomic_exchange(&r->pending[part], NULL));
    gpuconv_ir_free(r->response[part]);
    r->response[part] = NULL;
}

void gc_realtime_free_control(gpuconv_realtime *r) {
    for (int part = 0; part < GC_RT_PARTS; part++)
        free_part(r, part);
    pthread_mutex_destroy(&r->control);
}

void gc_realtime_poll_for(gpuconv_realtime *r, const gc_rt_convolver *c) {
    for (int i = 0; i < c->stages; i++) {
        const long ns = (long)(1e9 * (double)c->stage[i].level.hop / r->config.rate / 2);
        if (!c->stage[i].level.at_once && ns < atomic_load(&r->poll_ns))
            atomic_store(&r->poll_ns, ns);
    }
}

gpuconv_status gc_realtime_make_convolver(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer,
                                          gc_rt_convolver **convolver, gpuconv_error *error) {
    const gc_gpu_target none = {NULL, -1};
    const gc_rt_calls calls = {r->config.block, r->config.rate, layer ? 1.0 / GC_RT_LAYERS : 1};
    return gc_rt_convolver_new(ir, &calls, layer || atomic_load(&r->gpu_failed) ? &none : &r->gpu, convolver, error);
}

gpuconv_status gc_realtime_make_delayed(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer,
                                        gc_rt_convolver **convolver, gpuconv_error *error) {
    gpuconv_ir *delayed;
    if (r->config.latency == 0)
        return gc_realtime_make_convolver(r, ir, layer, convolver, error);
    gpuconv_status status = gpuconv_ir_delay(ir, r->config.latency, &delayed, error);
    if (status)
        return status;
    status = gc_realtime_make_convolver(r, delayed, layer, convolver, error);
    gpuconv_ir_free(delayed);
    return status;
}

/* Puts a convolver into the mailbox of a part, in place of one that the callback has not taken. Takes `ir` over. */
static void post(gpuconv_realtime *r, int part, gpuconv_ir *ir, gc_rt_convolver *made, double seconds) {
    gpuconv_ir_free(r->response[part]);
    r->response[part] = ir;
    made->terms = (gc_rt_terms){(int64_t)(seconds * r->config.rate), r->number};
    gc_realtime_poll_for(r, made);
    atomic_store_explicit(&r->newest_fade, made->terms.fade, memory_order_relaxed);
    gc_rt_convolver_free(atomic_exchange(&r->pending[part], made));
}

/* Exchanges the whole response; the layers end with the previous one. Under `control`. */
static gpuconv_status exchange_whole(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gc_rt_convolver *made;
    gpuconv_status status = gc_realtime_make_delayed(r, ir, false, &made, error);
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
    gpuconv_status status = difference ? gc_realtime_make_delayed(r, difference, true, made, error)
                                       : gc_fail_memory(error, "the exchange of routes");
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
