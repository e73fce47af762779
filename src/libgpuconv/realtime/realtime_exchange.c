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

static void free_routes(gc_rt_layer *layer) {
    for (int i = 0; i < layer->routes; i++)
        gpuconv_ir_free(layer->route[i].ir);
    free(layer->route);
    *layer = (gc_rt_layer){0};
}

void gc_realtime_free_control(gpuconv_realtime *r) {
    gc_rt_convolver_free(atomic_load(&r->pending));
    for (int l = 0; l < GC_RT_LAYERS; l++) {
        gc_rt_convolver_free(atomic_load(&r->pending_layer[l]));
        free_routes(&r->layer[l]);
    }
    gpuconv_ir_free(r->response);
    pthread_mutex_destroy(&r->control);
}

/* Returns the response delayed by the configured latency. */
static gpuconv_status delay_response(const gpuconv_realtime *r, const gpuconv_ir *ir, gpuconv_ir **delayed,
                                     gpuconv_error *error) {
    if (r->config.latency > 0)
        return gpuconv_ir_delay(ir, r->config.latency, delayed, error);
    *delayed = gc_ir_hold(ir);
    return GPUCONV_OK;
}

gpuconv_status gc_realtime_make_whole(gpuconv_realtime *r, const gpuconv_ir *ir, gc_rt_convolver **convolver,
                                      gpuconv_error *error) {
    gpuconv_ir *delayed;
    gpuconv_status status = delay_response(r, ir, &delayed, error);
    if (status)
        return status;
    status = gc_realtime_make_convolver(r, delayed, convolver, error);
    gpuconv_ir_free(delayed);
    return status;
}

/* Puts a convolver into a mailbox, in place of one that the callback has not taken. */
static void post(gpuconv_realtime *r, _Atomic(gc_rt_convolver *) *mailbox, gc_rt_convolver *made, double seconds) {
    made->terms = (gc_rt_terms){(int64_t)(seconds * r->config.rate), r->number};
    gc_realtime_poll_for(r, made);
    atomic_store_explicit(&r->newest_fade, made->terms.fade, memory_order_relaxed);
    gc_rt_convolver_free(atomic_exchange(mailbox, made));
}

/* Exchanges the whole response; the layers end with the previous one. Under `control`. */
static gpuconv_status exchange_whole(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds, gpuconv_error *error) {
    gc_rt_convolver *made;
    gpuconv_status status = gc_realtime_make_whole(r, ir, &made, error);
    if (status)
        return status;
    gpuconv_ir *previous = r->response;
    r->response = gc_ir_hold(ir);
    gpuconv_ir_free(previous);
    r->number++;
    post(r, &r->pending, made, seconds);
    for (int l = 0; l < GC_RT_LAYERS; l++) {
        gc_rt_convolver_free(atomic_exchange(&r->pending_layer[l], NULL));
        free_routes(&r->layer[l]);
    }
    return GPUCONV_OK;
}

/* ---- Sets of routes ---------------------------------------------------------------------------------------------- */

static int compare_places(int input_a, int output_a, int input_b, int output_b) {
    return output_a != output_b ? (output_a < output_b ? -1 : 1) : (input_a > input_b) - (input_a < input_b);
}

static gc_rt_moved moved_of(const gpuconv_ir *ir, int route) {
    const gc_route *from = &ir->route[route];
    return (gc_rt_moved){from->input, from->output, from->plane, gc_ir_hold(ir)};
}

/* Merges the routes of a layer and of a response, which take precedence. Returns false without memory. */
static bool merge(const gc_rt_layer *layer, const gpuconv_ir *ir, gc_rt_layer *merged) {
    int a = 0, b = 0;
    *merged = (gc_rt_layer){.route = gc_calloc((int64_t)layer->routes + ir->routes, sizeof *merged->route)};
    if (!merged->route)
        return false;
    while (a < layer->routes || b < ir->routes) {
        int order = a == layer->routes ? 1 : -1;
        if (a < layer->routes && b < ir->routes)
            order =
                compare_places(layer->route[a].input, layer->route[a].output, ir->route[b].input, ir->route[b].output);
        gc_rt_moved *to = &merged->route[merged->routes++];
        if (order < 0) {
            *to = layer->route[a];
            (void)gc_ir_hold(to->ir);
        } else {
            *to = moved_of(ir, b++);
        }
        a += order <= 0;
    }
    return true;
}

/* Returns the number of routes of `ir` that a layer changes. */
static int count_shared(const gc_rt_layer *layer, const gpuconv_ir *ir) {
    int shared = 0;
    for (int a = 0, b = 0; a < layer->routes && b < ir->routes;) {
        const int order =
            compare_places(layer->route[a].input, layer->route[a].output, ir->route[b].input, ir->route[b].output);
        shared += order == 0;
        a += order <= 0;
        b += order >= 0;
    }
    return shared;
}

/* Returns the layer for the routes of `ir`: the one that has some of them, or a free one; -1 if several layers have
 * some, none is free, or layers would hold more than half of the routes. */
static int choose_layer(const gpuconv_realtime *r, const gpuconv_ir *ir) {
    int chosen = -1, vacant = -1, sharing = 0;
    int64_t routes = ir->routes;
    for (int l = GC_RT_LAYERS - 1; l >= 0; l--) {
        routes += r->layer[l].routes;
        if (r->layer[l].routes == 0)
            vacant = l;
        const int shared = count_shared(&r->layer[l], ir);
        routes -= shared;
        sharing += shared > 0;
        chosen = shared > 0 ? l : chosen;
    }
    if (sharing > 1 || 2 * routes > r->response->routes)
        return -1;
    return sharing ? chosen : vacant;
}

/* ---- Exchange by a layer ----------------------------------------------------------------------------------------- */

/* Returns the taps of the whole response between two channels; NULL: it has no such route. */
static const float *whole_taps(const gpuconv_ir *ir, int input, int output) {
    int low = 0, high = ir->routes - 1;
    while (low <= high) {
        const int middle = low + (high - low) / 2;
        const gc_route *at = &ir->route[middle];
        const int order = compare_places(at->input, at->output, input, output);
        if (order == 0)
            return gc_ir_plane(ir, at->plane);
        if (order < 0)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return NULL;
}

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

/* Makes the response of a layer, with its own channels only; `map` gets the caller's channels of its inputs, then, from
 * inputs[channels] on, of its outputs. Returns NULL without memory. */
static gpuconv_ir *make_difference(const gpuconv_realtime *r, const gc_rt_layer *layer, int *map) {
    const gpuconv_ir *whole = r->response;
    int *mark = gc_calloc((int64_t)r->inputs + r->outputs, sizeof *mark);
    int64_t frames = whole->frames;
    if (!mark)
        return NULL;
    for (int i = 0; i < layer->routes; i++) {
        mark[layer->route[i].input] = mark[r->inputs + layer->route[i].output] = 1;
        frames = gc_max(frames, layer->route[i].ir->frames);
    }
    const int inputs = number_channels(mark, r->inputs, map);
    const int outputs = number_channels(mark + r->inputs, r->outputs, map + r->inputs);
    gpuconv_ir *made = gc_ir_blank(inputs, outputs, layer->routes, layer->routes, frames, whole->rate);
    for (int i = 0; made && i < layer->routes; i++) {
        const gc_rt_moved *m = &layer->route[i];
        const float *new = gc_ir_plane(m->ir, m->plane), *old = whole_taps(whole, m->input, m->output);
        float *to = made->taps + i * frames;
        made->route[i] = (gc_route){mark[m->input], mark[r->inputs + m->output], i};
        memcpy(to, new, (size_t)m->ir->frames * sizeof *to);
        for (int64_t k = 0; old && k < whole->frames; k++)
            to[k] -= old[k];
    }
    if (made)
        made->routed = true;
    free(mark);
    return made;
}

/* Makes the convolver of a layer. It is computed on the CPU: its routes are few. Returns MEMORY. */
static gpuconv_status make_layer(const gpuconv_realtime *r, const gc_rt_layer *layer, gc_rt_convolver **made,
                                 gpuconv_error *error) {
    const gc_gpu_target none = {NULL, -1};
    const gc_rt_calls calls = {r->config.block, r->config.rate, 1.0 / GC_RT_LAYERS};
    gpuconv_ir *delayed = NULL;
    int *map = gc_calloc((int64_t)r->inputs + r->outputs, sizeof *map);
    gpuconv_ir *difference = map ? make_difference(r, layer, map) : NULL;
    gpuconv_status status =
        difference ? delay_response(r, difference, &delayed, error) : gc_fail_memory(error, "the exchange of routes");
    if (!status)
        status = gc_rt_convolver_new(delayed, &calls, &none, made, error);
    if (!status)
        for (int i = 0; i < delayed->inputs + delayed->outputs; i++)
            (*made)->channel[i] = map[i < delayed->inputs ? i : r->inputs + i - delayed->inputs];
    gpuconv_ir_free(delayed);
    gpuconv_ir_free(difference);
    free(map);
    return status;
}

static gpuconv_status exchange_layer(gpuconv_realtime *r, int l, const gpuconv_ir *ir, double seconds,
                                     gpuconv_error *error) {
    gc_rt_layer merged;
    gc_rt_convolver *made;
    if (!merge(&r->layer[l], ir, &merged))
        return gc_fail_memory(error, "the exchange of routes");
    gpuconv_status status = make_layer(r, &merged, &made, error);
    if (status) {
        free_routes(&merged);
        return status;
    }
    free_routes(&r->layer[l]);
    r->layer[l] = merged;
    post(r, &r->pending_layer[l], made, seconds);
    return GPUCONV_OK;
}

/* ---- Exchange by a new whole response ---------------------------------------------------------------------------- */

/* Writes the present taps of every route: those of the whole response, then of the layers, then of `ir`. Returns the
 * number of routes. */
static int present_routes(const gpuconv_realtime *r, const gpuconv_ir *ir, gc_rt_moved *at) {
    int routes = 0;
    for (int i = 0; i < r->response->routes; i++) {
        const gc_route *from = &r->response->route[i];
        at[from->output * r->inputs + from->input] = (gc_rt_moved){from->input, from->output, from->plane, r->response};
    }
    for (int l = 0; l < GC_RT_LAYERS; l++)
        for (int i = 0; i < r->layer[l].routes; i++) {
            const gc_rt_moved *from = &r->layer[l].route[i];
            at[from->output * r->inputs + from->input] = *from;
        }
    for (int i = 0; i < ir->routes; i++) {
        const gc_route *from = &ir->route[i];
        at[from->output * r->inputs + from->input] =
            (gc_rt_moved){from->input, from->output, from->plane, (gpuconv_ir *)ir};
    }
    for (int k = 0; k < r->inputs * r->outputs; k++)
        routes += at[k].ir != NULL;
    return routes;
}

/* Makes one response of all present routes. Returns MEMORY. */
static gpuconv_status gather(const gpuconv_realtime *r, const gpuconv_ir *ir, gpuconv_ir **gathered,
                             gpuconv_error *error) {
    gc_rt_moved *at = gc_calloc((int64_t)r->inputs * r->outputs, sizeof *at);
    int64_t frames = 0;
    int p = 0;
    if (!at)
        return gc_fail_memory(error, "the exchange of routes");
    const int routes = present_routes(r, ir, at);
    for (int k = 0; k < r->inputs * r->outputs; k++)
        frames = at[k].ir ? gc_max(frames, at[k].ir->frames) : frames;
    gpuconv_status status = gc_ir_check_memory(routes, (double)frames, 0, error);
    gpuconv_ir *made = status ? NULL : gc_ir_blank(r->inputs, r->outputs, routes, routes, frames, r->response->rate);
    if (!status && !made)
        status = gc_fail_memory(error, "the exchange of routes");
    for (int k = 0; made && k < r->inputs * r->outputs; k++) {
        if (!at[k].ir)
            continue;
        made->route[p] = (gc_route){at[k].input, at[k].output, p};
        memcpy(made->taps + p++ * frames, gc_ir_plane(at[k].ir, at[k].plane),
               (size_t)at[k].ir->frames * sizeof *made->taps);
    }
    if (made) {
        made->lead = r->response->lead;
        made->routed = true;
    }
    free(at);
    *gathered = made;
    return status;
}

static gpuconv_status exchange_gathered(gpuconv_realtime *r, const gpuconv_ir *ir, double seconds,
                                        gpuconv_error *error) {
    gpuconv_ir *gathered;
    gpuconv_status status = gather(r, ir, &gathered, error);
    if (status)
        return status;
    status = exchange_whole(r, gathered, seconds, error);
    gpuconv_ir_free(gathered);
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
    status = l >= 0 ? exchange_layer(r, l, ir, seconds, error) : exchange_gathered(r, ir, seconds, error);
    pthread_mutex_unlock(&r->control);
    return status;
}
