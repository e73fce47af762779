/* The convolver as an LV2 plug-in with one or two input channels and two output channels, in forms for reverb and for
 * sounds in space: instances and ports.
 *
 * The response is a patch property, the path of a file. Hosts set it by a message to the control port, which is passed
 * to the worker: the worker reads and prepares the file and crossfades to the new response. Until the host sets a
 * response, the bundle's default response is used. */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double predelay_most = 0.5; /* seconds */

static void cleanup(LV2_Handle handle) {
    plugin *p = handle;
    for (int s = 0; s < SLOTS; s++)
        gpuconv_realtime_free(atomic_load(&p->slot[s].realtime));
    gc_lv2_free_space(p);
    (void)gc_lv2_track_head(p, 0, NULL);
    pthread_mutex_destroy(&p->loading);
    pthread_mutex_destroy(&p->path_lock);
    free(p->line.samples);
    free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *bundle,
                              const LV2_Feature *const *features) {
    gpuconv_error error = {GPUCONV_OK, ""};
    char path[PATH_MOST];
    const edits plain = {.stretch = 1};
    const lv2_form form = gc_lv2_form(descriptor->URI);
    int length = snprintf(path, sizeof path, "%sdefault.%s", bundle, form.is_space ? "sofa" : "flac");
    load first = {.path = path, .wanted = &plain};
    if (!(rate >= 1000 && rate <= 1e6) || length < 0 || length >= PATH_MOST)
        return NULL;
    plugin *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->loading, NULL);
    pthread_mutex_init(&p->path_lock, NULL);
    p->rate = rate;
    p->form = form;
    atomic_store(&p->space.tracker, -1);
    for (; features && *features; features++) {
        if (strcmp((*features)->URI, LV2_URID__map) == 0)
            p->map = (*features)->data;
        else if (strcmp((*features)->URI, LV2_WORKER__schedule) == 0)
            p->worker = (*features)->data;
        else if (strcmp((*features)->URI, LV2_LOG__log) == 0)
            p->log.log = (*features)->data;
    }
    lv2_log_logger_set_map(&p->log, p->map);
    if (p->map)
        p->uri = gc_lv2_map_uris(p->map, &p->forge);
    p->line.capacity = (int64_t)(predelay_most * rate) + CHUNK;
    p->line.fade_frames = (int64_t)(0.02 * rate);
    p->line.samples = calloc((size_t)(p->line.capacity * p->form.inputs), sizeof *p->line.samples);
    if (!p->line.samples || !gc_lv2_load(p, &first, &error)) {
        gc_lv2_log_error(p, p->line.samples ? error.message : "out of memory");
        cleanup(p);
        return NULL;
    }
    p->requested = plain;
    (void)snprintf(p->slot[0].announced_path, sizeof p->slot[0].announced_path, "%s", path);
    return p;
}

static void connect(LV2_Handle handle, uint32_t index, void *data) {
    plugin *p = handle;
    uint32_t channel;
    const port number = gc_lv2_port_at(p->form, index, &channel);
    if (number == CONTROL) {
        p->control = data;
    } else if (number == NOTIFY) {
        p->notify = data;
    } else if (number < PORTS) {
        p->parameter[number] = data;
    } else if (channel < p->form.inputs) {
        p->in[channel] = data;
        if (p->form.inputs == 1)
            p->in[1] = data;
    } else if (channel < p->form.inputs + OUTPUTS) {
        p->out[channel - p->form.inputs] = data;
    }
}

static void activate(LV2_Handle handle) {
    plugin *p = handle;
    for (int s = 0; s < SLOTS; s++)
        gpuconv_realtime_reset(atomic_load(&p->slot[s].realtime));
    gc_lv2_clear_signal(p);
}

static void run(LV2_Handle handle, uint32_t frames) {
    plugin *p = handle;
    gc_lv2_read_messages(p);
    gc_lv2_follow_edits(p);
    gc_lv2_look_for_missing(p, frames);
    gc_lv2_write_messages(p);
    gc_lv2_run_signal(p, frames);
    if (p->parameter[LATENCY])
        *p->parameter[LATENCY] = (float)gc_lv2_lead(p);
    if (p->parameter[LATE_BLOCKS])
        *p->parameter[LATE_BLOCKS] = (float)(gpuconv_realtime_late_blocks(atomic_load(&p->slot[0].realtime)) +
                                             gpuconv_realtime_late_blocks(atomic_load(&p->slot[1].realtime)));
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
        {PLUGIN_URI "space-stereo", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "space-mono", instantiate, connect, activate, run, NULL, cleanup, extension},
    };
    return index < sizeof descriptors / sizeof *descriptors ? &descriptors[index] : NULL;
}
