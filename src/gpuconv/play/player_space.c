/*
 * A player in space: its moving sources, and its turning head, whose orientation over time comes from a file or as the
 * latest one by OSC. When it has turned, the responses of all channels are made again and crossfaded.
 */
#include "player_state.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/file/move_file.h"
#include "libgpuconv/space/head.h"
#include "libgpuconv/space/path.h"
#include "osc/osc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Orientations ------------------------------------------------------------------------------------------------ */

struct gc_follow {
    gpuconv_head *head; /* of a file; NULL: OSC */
    gc_osc *osc;        /* NULL: a file */
    double latest[3];   /* yaw, pitch, roll of OSC */
};

void gc_follow_free(gc_follow *f) {
    if (!f)
        return;
    gc_osc_close(f->osc);
    gpuconv_head_free(f->head);
    free(f);
}

gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error) {
    *follow = NULL;
    gc_follow *f = gc_calloc(1, sizeof *f);
    if (!f)
        return gc_fail_memory(error, "following a head");
    const bool osc = strcmp(source, "osc") == 0 || strncmp(source, "osc:", 4) == 0;
    gpuconv_status status =
        osc ? gc_osc_open(source[3] ? source + 4 : "9000", &f->osc, error) : gpuconv_head_load(source, &f->head, error);
    if (status) {
        gc_follow_free(f);
        return status;
    }
    *follow = f;
    return GPUCONV_OK;
}

gc_orientation gc_follow_at(gc_follow *f, double seconds) {
    double angle[3];
    if (f->osc) {
        gc_osc_take_angles(f->osc, f->latest);
        return (gc_orientation){f->latest[0], f->latest[1], f->latest[2]};
    }
    gc_head_at(f->head, seconds, angle);
    return (gc_orientation){remainder(angle[0], 360), remainder(angle[1], 360), remainder(angle[2], 360)};
}

/* ---- The turning head -------------------------------------------------------------------------------------------- */

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

/* ---- Moving sources ---------------------------------------------------------------------------------------------- */

static gc_sources sources_of(const gc_player_config *c) {
    return (gc_sources){c->path, c->direction, c->speakers, c->head};
}

/* Checks that the configuration has what moving sources need. Returns ARGUMENT. */
static gpuconv_status check(const gc_player_config *c, gpuconv_error *error) {
    if (c->response_count != 1 || !gc_is_sofa(c->responses[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a path and a head that turns need one SOFA file",
                       c->responses[0]);
    if (c->follow && c->head)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a head that is followed excludes one from a file");
    const gc_sources sources = sources_of(c);
    return gc_sources_check(&sources, error);
}

/* Opens the set, the path and the head. Returns the errors of their functions. */
static gpuconv_status open_files(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    gpuconv_status status = gpuconv_sofa_open(c->responses[0], p->rate, &p->sofa, error);
    const gc_sources sources = sources_of(c);
    return status ? status : gc_sources_open(&sources, p->inputs, &p->path, &p->turns, error);
}

gpuconv_status gc_player_open_motion(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    gpuconv_motion_config config = gpuconv_motion_config_default();
    if (!c->path && !c->head)
        return GPUCONV_OK;
    gpuconv_status status = check(c, error);
    if (!status)
        status = open_files(p, error);
    config.interval = c->interval > 0 ? c->interval : config.interval;
    config.interpolate = c->interpolate;
    config.by_distance = c->by_distance;
    config.doppler = c->doppler;
    config.decode = c->decode;
    config.threads = c->threads;
    config.backend = c->backend;
    config.device = c->device;
    config.head = p->turns;
    if (!status)
        status = gpuconv_motion_new(p->sofa, p->path, &config, &p->motion, error);
    if (!status)
        status = gpuconv_motion_start(p->motion, c->block ? c->block : 1024, error);
    if (status)
        return status;
    p->outputs = gpuconv_sofa_receivers(p->sofa);
    p->current_lead = gpuconv_motion_latency(p->motion);
    atomic_store(&p->lead, p->current_lead);
    atomic_store(&p->tail, gpuconv_motion_tail(p->motion) + p->current_lead);
    char path[64] = "", head[64] = "";
    if (c->path)
        gc_track_describe(&p->path->text, path);
    if (p->turns)
        gc_track_describe(&p->turns->text, head);
    (void)snprintf(p->applied, sizeof p->applied, "%d channel%s %s%s%s%s, %d directions", p->inputs,
                   p->inputs == 1 ? "" : "s", c->path ? "along a path" : "in place", path,
                   c->head ? " before a head that turns" : "", head, gpuconv_sofa_directions(p->sofa));
    return p->outputs <= GC_PLAYER_CHANNELS
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "cannot play %d channels; use up to %d", p->outputs,
                         GC_PLAYER_CHANNELS);
}
