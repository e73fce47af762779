/* The convolver as an LV2 plug-in with one or two input channels and two output channels: instances, ports, and the
 * signal path of predelay, convolution, wet and dry gain.
 *
 * The response is a patch property, the path of a file. Hosts set it by a message to the control port, which is passed
 * to the worker: the worker reads and prepares the file and crossfades to the new response. Until the host sets a
 * response, the bundle's default response is used. */
#include "plugin.h"

#include <lv2/atom/atom.h>
#include <lv2/patch/patch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double predelay_most = 0.5; /* seconds */
static const float level_most = 24;      /* dB */

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
    if (!p->line.samples || !gc_lv2_load(p, path, &number, &error)) {
        gc_lv2_log_error(p, p->line.samples ? error.message : "out of memory");
        cleanup(p);
        return NULL;
    }
    (void)snprintf(p->announced_path, sizeof p->announced_path, "%s", path);
    return p;
}

static void connect(LV2_Handle handle, uint32_t index, void *data) {
    plugin *p = handle;
    if (index == CONTROL)
        p->control = data;
    else if (index == NOTIFY)
        p->notify = data;
    else if (index == LATENCY || index == LATE_BLOCKS)
        p->reported[index] = data;
    else if (index < AUDIO)
        p->parameter[index] = data;
    else if (index < AUDIO + (uint32_t)p->inputs)
        p->in[index - AUDIO] = data;
    else if (index < AUDIO + (uint32_t)p->inputs + OUTPUTS)
        p->out[index - AUDIO - (uint32_t)p->inputs] = data;
}

static void activate(LV2_Handle handle) {
    plugin *p = handle;
    delay_line *line = &p->line;
    memset(line->samples, 0, (size_t)(line->capacity * p->inputs) * sizeof *line->samples);
    line->position = line->fade_left = 0;
    line->delay = line->previous_delay = -1; /* the first block takes delay and gains from the ports without a fade */
    p->wet = p->dry = -1;
}

/* Returns the gain of a level port, limited to the port's range; 0 at -90 dB and below, for NaN, and without a port. */
static float port_gain(const float *decibels) {
    return !decibels || !(*decibels > -90) ? 0 : powf(10, fminf(*decibels, level_most) / 20);
}

/* Returns the predelay of the port in frames, limited to the delay line; 0 for NaN. */
static int64_t port_delay(const plugin *p) {
    const int64_t most = p->line.capacity - CHUNK;
    float frames = (p->parameter[PREDELAY] ? *p->parameter[PREDELAY] : 0) * 1e-3f * (float)p->rate;
    frames = frames > 0 ? fminf(frames, (float)most) : 0;
    int64_t delay = (int64_t)lrintf(frames);
    return delay > most ? most : delay;
}

/* Writes n input frames from frame `from` to the delay line and the delayed frames to `out`. A changed delay is
 * crossfaded. */
static void run_delay(plugin *p, int64_t from, int64_t n, float *const *out) {
    delay_line *l = &p->line;
    int64_t wanted = port_delay(p);
    if (l->delay < 0)
        l->delay = l->previous_delay = wanted;
    if (wanted != l->delay && l->fade_left == 0) {
        l->previous_delay = l->delay;
        l->delay = wanted;
        l->fade_left = l->fade_frames;
    }
    for (int64_t i = 0; i < n; i++) {
        float previous_part = l->fade_left > 0 ? (float)l->fade_left / (float)l->fade_frames : 0;
        for (int c = 0; c < p->inputs; c++) {
            float *samples = l->samples + c * l->capacity;
            samples[l->position] = p->in[c][from + i];
            float current = samples[(l->position + l->capacity - l->delay) % l->capacity];
            float previous = samples[(l->position + l->capacity - l->previous_delay) % l->capacity];
            out[c][i] = current + previous_part * (previous - current);
        }
        l->position = (l->position + 1) % l->capacity;
        l->fade_left -= l->fade_left > 0;
    }
}

static void run(LV2_Handle handle, uint32_t frames) {
    plugin *p = handle;
    float gain = port_gain(p->parameter[GAIN]), wet = gain * port_gain(p->parameter[WET]),
          dry = gain * port_gain(p->parameter[DRY]);
    float *delayed[] = {p->block[0], p->block[1]}, *convolved[] = {p->block[2], p->block[3]};
    gc_lv2_read_messages(p);
    gc_lv2_write_messages(p);
    gpuconv_realtime_set_freewheel(p->realtime, p->parameter[FREEWHEEL] && *p->parameter[FREEWHEEL] > 0);
    if (p->wet < 0) {
        p->wet = wet;
        p->dry = dry;
    }
    float steps = frames > 0 ? (float)frames : 1, wet_step = (wet - p->wet) / steps, dry_step = (dry - p->dry) / steps;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = frames - at < CHUNK ? frames - at : CHUNK;
        run_delay(p, at, n, delayed);
        gpuconv_realtime_process(p->realtime, (const float *const *)delayed, convolved, n);
        for (int64_t i = 0; i < n; i++) {
            p->wet += wet_step;
            p->dry += dry_step;
            /* The host may use the same buffers for input and output, so both inputs are read first. */
            float left = p->in[0][at + i], right = p->in[p->inputs - 1][at + i];
            p->out[0][at + i] = p->wet * convolved[0][i] + p->dry * left;
            p->out[1][at + i] = p->wet * convolved[1][i] + p->dry * right;
        }
    }
    p->wet = wet;
    p->dry = dry;
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
