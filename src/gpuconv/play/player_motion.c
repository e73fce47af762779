/* The moving sources of a player. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/file/move_file.h"
#include "libgpuconv/space/head.h"
#include "libgpuconv/space/path.h"
#include "player_state.h"

#include <stdio.h>

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
