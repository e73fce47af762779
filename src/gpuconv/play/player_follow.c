/*
 * The turning head of a player. A channel whose nearest measurement stays the same keeps its responses. The responses
 * of the others are exchanged channel by channel; all of them at once if more than half change, and for ambisonics.
 */
#include "libgpuconv/core/error.h"
#include "player_state.h"

#include <math.h>

static const double fade = 0.02; /* seconds */

static gc_scene scene_of(const gc_player *p) {
    return (gc_scene){p->config.direction, p->config.speakers, p->head};
}

/* Replaces a response by one at the device's rate. Frees it on failure. */
static gpuconv_status to_device_rate(const gc_player *p, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_ir *recorded = *ir;
    if (gpuconv_ir_rate(recorded) == p->rate)
        return GPUCONV_OK;
    gpuconv_status status = gpuconv_ir_resample(recorded, p->rate, ir, error);
    gpuconv_ir_free(recorded);
    return status;
}

gpuconv_status gc_player_turned_response(const gc_player *p, gpuconv_ir **ir, gpuconv_error *error) {
    const gc_scene scene = scene_of(p);
    gpuconv_status status = gc_spatial_make(p->sofa, p->config.responses[0], &scene, p->inputs, ir, error);
    return status ? status : to_device_rate(p, ir, error);
}

gpuconv_status gc_player_open_follow(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    if (!c->follow)
        return GPUCONV_OK;
    if (c->response_count != 1 || !gc_is_sofa(c->responses[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a turning head needs one SOFA file", c->responses[0]);
    gpuconv_status status = gc_sofa_load(c->responses[0], &p->sofa, error);
    if (!status)
        status = gc_follow_open(c->follow, &p->follow, error);
    if (status)
        return status;
    p->head = gc_follow_at(p->follow, c->seek);
    const gc_scene scene = scene_of(p);
    return gc_spatial_has_directions(&scene)
               ? gc_spatial_find(p->sofa, c->responses[0], &scene, p->inputs, p->measurement, error)
               : GPUCONV_OK;
}

static gpuconv_status exchange_all(gc_player *p, gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_status status = gc_player_turned_response(p, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap(p->realtime, ir, fade, error);
    gpuconv_ir_free(ir);
    return status;
}

static gpuconv_status exchange_channel(gc_player *p, int channel, gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_status status = gc_spatial_make_channel(p->sofa, p->measurement[channel], channel, p->inputs, &ir, error);
    if (!status)
        status = to_device_rate(p, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap_routes(p->realtime, ir, fade, error);
    gpuconv_ir_free(ir);
    return status;
}

/* Exchanges the responses of the channels whose nearest measurement has changed. */
static gpuconv_status exchange_changed(gc_player *p, gpuconv_error *error) {
    const gc_scene scene = scene_of(p);
    int before[GC_PLAYER_CHANNELS] = {0}, changed = 0;
    for (int i = 0; i < p->inputs; i++)
        before[i] = p->measurement[i];
    gpuconv_status status = gc_spatial_find(p->sofa, p->config.responses[0], &scene, p->inputs, p->measurement, error);
    for (int i = 0; !status && i < p->inputs; i++)
        changed += p->measurement[i] != before[i];
    if (!status && 2 * changed > p->inputs)
        return exchange_all(p, error);
    for (int i = 0; !status && i < p->inputs; i++)
        if (p->measurement[i] != before[i])
            status = exchange_channel(p, i, error);
    return status;
}

gpuconv_status gc_player_follow(gc_player *p, gpuconv_error *error) {
    const double turn = 0.5; /* degrees that are too small to be heard */
    if (!p->follow)
        return GPUCONV_OK;
    const gc_orientation to = gc_follow_at(p->follow, (double)atomic_load(&p->position) / p->rate), from = p->head;
    if (fabs(remainder(to.yaw - from.yaw, 360)) < turn && fabs(to.pitch - from.pitch) < turn &&
        fabs(to.roll - from.roll) < turn)
        return GPUCONV_OK;
    p->head = to;
    const gc_scene scene = scene_of(p);
    return gc_spatial_has_directions(&scene) ? exchange_changed(p, error) : exchange_all(p, error);
}
