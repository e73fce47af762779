/* The convolver as an LV2 plug-in with one or two input channels and two output channels: instances and ports.
 *
 * The response is a patch property, the path of a file. Hosts set it by a message to the control port, which is passed
 * to the worker: the worker reads and prepares the file and crossfades to the new response. Until the host sets a
 * response, the bundle's default response is used. */
#include "plugin.h"

#include <lv2/atom/atom.h>
#include <lv2/patch/patch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double predelay_most = 0.5; /* seconds */

/* Maps the URIs that messages and state need. */
static void map_uris(plugin *p) {
    if (!p->map)
        return;
    LV2_URID_Map *m = p->map;
    p->uri = (uris){.path = m->map(m->handle, LV2_ATOM__Path),
                    .set = m->map(m->handle, LV2_PATCH__Set),
                    .get = m->map(m->handle, LV2_PATCH__Get),
                    .property = m->map(m->handle, LV2_PATCH__property),
                    .value = m->map(m->handle, LV2_PATCH__value),
                    .response = m->map(m->handle, RESPONSE_URI),
                    .error = m->map(m->handle, ERROR_URI),
                    .string = m->map(m->handle, LV2_ATOM__String),
                    .urid = m->map(m->handle, LV2_ATOM__URID)};
    lv2_atom_forge_init(&p->forge, m);
}

static void cleanup(LV2_Handle handle) {
    plugin *p = handle;
    gpuconv_realtime_free(p->realtime);
    pthread_mutex_destroy(&p->loading);
    pthread_mutex_destroy(&p->path_lock);
    free(p->line.samples);
    free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *bundle,
                              const LV2_Feature *const *features) {
    gpuconv_error error = {GPUCONV_OK, ""};
    char path[PATH_MOST];
    uint32_t number;
    const edits plain = {.stretch = 1};
    int length = snprintf(path, sizeof path, "%sdefault.flac", bundle);
    if (!(rate >= 1000 && rate <= 1e6) || length < 0 || length >= PATH_MOST)
        return NULL;
    plugin *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->loading, NULL);
    pthread_mutex_init(&p->path_lock, NULL);
    p->rate = rate;
    p->inputs = strstr(descriptor->URI, "mono") ? 1 : 2;
    for (; features && *features; features++) {
        if (strcmp((*features)->URI, LV2_URID__map) == 0)
            p->map = (*features)->data;
        else if (strcmp((*features)->URI, LV2_WORKER__schedule) == 0)
            p->worker = (*features)->data;
        else if (strcmp((*features)->URI, LV2_LOG__log) == 0)
            p->log.log = (*features)->data;
    }
    lv2_log_logger_set_map(&p->log, p->map);
    map_uris(p);
    p->line.capacity = (int64_t)(predelay_most * rate) + CHUNK;
    p->line.fade_frames = (int64_t)(0.02 * rate);
    p->line.samples = calloc((size_t)(p->line.capacity * p->inputs), sizeof *p->line.samples);
    if (!p->line.samples || !gc_lv2_load(p, path, &plain, &number, &error)) {
        gc_lv2_log_error(p, p->line.samples ? error.message : "out of memory");
        cleanup(p);
        return NULL;
    }
    p->requested = plain;
    (void)snprintf(p->announced_path, sizeof p->announced_path, "%s", path);
    return p;
}

static void connect(LV2_Handle handle, uint32_t index, void *data) {
    plugin *p = handle;
    const uint32_t inputs = (uint32_t)p->inputs, audio = inputs + OUTPUTS;
    if (index == CONTROL) {
        p->control = data;
    } else if (index == NOTIFY) {
        p->notify = data;
    } else if (index >= AUDIO && index < AUDIO + inputs) {
        p->in[index - AUDIO] = data;
        if (inputs == 1)
            p->in[1] = data;
    } else if (index >= AUDIO && index < AUDIO + audio) {
        p->out[index - AUDIO - inputs] = data;
    } else {
        uint32_t number = index < AUDIO ? index : index - audio;
        if (number == LATENCY || number == LATE_BLOCKS || (number >= PEAK_IN && number < REVERSE))
            p->reported[number] = data;
        else if (number < PORTS)
            p->parameter[number] = data;
    }
}

static void activate(LV2_Handle handle) {
    plugin *p = handle;
    gpuconv_realtime_reset(p->realtime);
    gc_lv2_clear_signal(p);
}

static void run(LV2_Handle handle, uint32_t frames) {
    plugin *p = handle;
    gc_lv2_read_messages(p);
    gc_lv2_follow_edits(p);
    gc_lv2_write_messages(p);
    gpuconv_realtime_set_freewheel(p->realtime, p->parameter[FREEWHEEL] && *p->parameter[FREEWHEEL] > 0);
    gc_lv2_run_signal(p, frames);
    if (p->reported[LATENCY])
        *p->reported[LATENCY] = (float)atomic_load(&p->lead);
    if (p->reported[LATE_BLOCKS])
        *p->reported[LATE_BLOCKS] = (float)gpuconv_realtime_late_blocks(p->realtime);
}

static const void *extension(const char *uri) {
    return strcmp(uri, LV2_WORKER__interface) == 0  ? (const void *)&gc_lv2_worker
           : strcmp(uri, LV2_STATE__interface) == 0 ? (const void *)&gc_lv2_state
                                                    : NULL;
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
    static const LV2_Descriptor descriptors[] = {
        {PLUGIN_URI "stereo", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "mono", instantiate, connect, activate, run, NULL, cleanup, extension},
    };
    return index < sizeof descriptors / sizeof *descriptors ? &descriptors[index] : NULL;
}
