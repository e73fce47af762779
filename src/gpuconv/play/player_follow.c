/* The turning head of a player: the responses of all channels are made again and crossfaded when it has moved. */
#include "libgpuconv/core/error.h"
#include "player_state.h"

#include <math.h>

static const double fade = 0.02; /* seconds */

gpuconv_status gc_player_turned_response(const gc_player *p, gpuconv_ir **ir, gpuconv_error *error) {
    const gc_scene scene = {.direction = p->config.direction,
                            .layout = p->config.speakers,
                            .head = p->head,
                            .interpolate = p->config.interpolate,
                            .by_distance = p->config.by_distance,
                            .moves = true};
    const gc_rotation head = gc_rotation_of(p->head.yaw, p->head.pitch, p->head.roll);
    return p->decoder ? gc_decoder_turn(p->decoder, &head, ir, error)
                      : gc_spatial_make(p->sofa, &scene, p->inputs, ir, error);
}

gpuconv_status gc_player_open_follow(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    if (!c->follow)
        return GPUCONV_OK;
    if (c->response_count != 1 || !gc_is_sofa(c->responses[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a turning head needs one SOFA file", c->responses[0]);
    if (c->path || c->head) /* player_motion.c opens the rest */
        return gc_follow_open(c->follow, &p->follow, error);
    gpuconv_status status = gpuconv_sofa_open(c->responses[0], p->rate, &p->sofa, error);
    if (!status)
        status = gc_follow_open(c->follow, &p->follow, error);
    const gc_scene scene = {.layout = c->speakers};
    const int order = gc_spatial_is_ambisonic(&scene) ? gc_ambisonic_order(p->inputs) : 0;
    if (!status && order) /* once: the fit does not depend on the head */
        status = gc_decoder_new(p->sofa, order, c->decode, false, &p->decoder, error);
    if (!status)
        p->head = gc_follow_at(p->follow, c->seek);
    return status;
}

gpuconv_status gc_player_follow(gc_player *p, gpuconv_error *error) {
    const double turn = 0.5; /* degrees that are too small to be heard */
    if (!p->follow)
        return GPUCONV_OK;
    const gc_orientation to = gc_follow_at(p->follow, (double)atomic_load(&p->position) / p->rate), from = p->head;
    if (p->motion) {
        gpuconv_motion_turn(p->motion, (const double[3]){to.yaw, to.pitch, to.roll});
        return GPUCONV_OK;
    }
    if (fabs(remainder(to.yaw - from.yaw, 360)) < turn && fabs(to.pitch - from.pitch) < turn &&
        fabs(to.roll - from.roll) < turn)
        return GPUCONV_OK;
    gpuconv_ir *ir;
    p->head = to;
    gpuconv_status status = gc_player_turned_response(p, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap(p->realtime, ir, fade, error);
    gpuconv_ir_free(ir);
    return status;
}
