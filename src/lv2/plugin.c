/*
 * The convolver as an LV2 plug-in: one or two channels in, two out.
 *
 * The response is a property, the path of a file. Hosts set it by a message, which goes to the worker: there it is
 * read, prepared, and exchanged for the one that sounds, faded over. What the audio thread does is
 * gpuconv_realtime_process, a delay line and two gains. Without a word from the host the response of the bundle sounds.
 */
#include "gpuconv.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/log/logger.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_URI "urn:gpuconv:"
#define RESPONSE_URI PLUGIN_URI "response"

enum { CHUNK = 256, OUTPUTS = 2, PATH_MOST = 4096 };

static const double fade_seconds = 0.05, predelay_most = 0.5;

/* In the order of their index in the description. */
typedef enum port { CONTROL, NOTIFY, WET, DRY, GAIN, PREDELAY, FREEWHEEL, LATENCY, MISSED, AUDIO } port;

typedef struct uris {
    LV2_URID path, set, get, property, value, response, urid;
} uris;

typedef struct plugin {
    int inputs;
    double rate;
    const LV2_Atom_Sequence *control;
    LV2_Atom_Sequence *notify;
    const float *number[MISSED + 1];
    float *told[MISSED + 1];
    const float *in[2];
    float *out[OUTPUTS];
    uris uri;
    LV2_URID_Map *map;
    LV2_Worker_Schedule *worker;
    LV2_Log_Logger log;
    LV2_Atom_Forge forge;
    gpuconv_realtime *realtime;
    _Atomic double lead;   /* frames of the response before its time zero */
    char path[PATH_MOST];  /* of the response; the worker's and the host's threads for state, never the audio's */
    char heard[PATH_MOST]; /* as the audio thread was told */
    bool tell;             /* the host asked, or the response is another one */
    float wet, dry;        /* factors as they stand */
    float *line;           /* the predelay's delay line, a channel after another */
    int64_t room, at, delay, older, fading, fade; /* frames; `older` fades into `delay` */
    float block[4][CHUNK];
} plugin;

/* What goes to the worker and comes back: a path. */
typedef struct message {
    uint32_t length;
    char path[PATH_MOST];
} message;

static void complain(plugin *p, const char *text) {
    lv2_log_error(&p->log, "gpuconv: %s\n", text);
}

/* ---- The response ------------------------------------------------------------------------------------------------ */

/* Reads and prepares it for this plug-in's channels: a mono input also takes a response that is mono, into both. */
static gpuconv_status prepare(const plugin *p, const char *path, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_preparation plain = gpuconv_preparation_default();
    gpuconv_ir *own;
    gpuconv_status status = gpuconv_ir_prepare(path, &plain, p->inputs, p->rate, &own, error);
    if (status || gpuconv_ir_outputs(own) == OUTPUTS) {
        *ir = own;
        return status;
    }
    if (gpuconv_ir_outputs(own) != 1) {
        gpuconv_ir_free(own);
        error->status = GPUCONV_ERROR_TOPOLOGY;
        (void)snprintf(error->message, sizeof error->message, "%.400s: 1, 2 or, for stereo, 4 channels fit", path);
        return error->status;
    }
    const float *both[] = {gpuconv_ir_taps(own, 0, 0), gpuconv_ir_taps(own, 0, 0)};
    gpuconv_ir *wide = NULL;
    status = gpuconv_ir_new(both, 2, gpuconv_ir_frames(own), p->rate, &wide, error);
    if (!status)
        status = gpuconv_ir_route(wide, 1, ir, error);
    gpuconv_ir_free(wide);
    gpuconv_ir_free(own);
    return status;
}

/* On any thread but the audio's. */
static bool load(plugin *p, const char *path, gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_status status = prepare(p, path, &ir, error);
    if (status)
        return false;
    if (p->realtime) {
        status = gpuconv_realtime_swap(p->realtime, ir, fade_seconds, error);
    } else {
        gpuconv_realtime_config config = {.rate = p->rate, .block = CHUNK};
        status = gpuconv_realtime_new(ir, &config, &p->realtime, error);
    }
    if (!status) {
        atomic_store(&p->lead, (double)gpuconv_ir_lead(ir));
        (void)snprintf(p->path, sizeof p->path, "%s", path);
    }
    gpuconv_ir_free(ir);
    return !status;
}

static LV2_Worker_Status work(LV2_Handle handle, LV2_Worker_Respond_Function respond, LV2_Worker_Respond_Handle to,
                              uint32_t size, const void *data) {
    plugin *p = handle;
    const message *m = data;
    gpuconv_error error = {GPUCONV_OK, ""};
    (void)size;
    if (!load(p, m->path, &error)) {
        complain(p, error.message);
        return LV2_WORKER_ERR_UNKNOWN;
    }
    return respond(to, size, data);
}

/* On the audio thread again: the host is told what sounds now. */
static LV2_Worker_Status work_response(LV2_Handle handle, uint32_t size, const void *data) {
    plugin *p = handle;
    const message *m = data;
    (void)size;
    memcpy(p->heard, m->path, m->length + 1);
    p->tell = true;
    return LV2_WORKER_SUCCESS;
}

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static void find_uris(plugin *p) {
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
    free(p->line);
    free(p);
}

static LV2_Handle instantiate(const LV2_Descriptor *descriptor, double rate, const char *bundle,
                              const LV2_Feature *const *features) {
    plugin *p = calloc(1, sizeof *p);
    gpuconv_error error = {GPUCONV_OK, ""};
    char path[PATH_MOST];
    if (!p)
        return NULL;
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
    find_uris(p);
    p->room = (int64_t)(predelay_most * rate) + CHUNK;
    p->fade = (int64_t)(0.02 * rate);
    p->line = calloc((size_t)(p->room * p->inputs), sizeof *p->line);
    (void)snprintf(path, sizeof path, "%sdefault.flac", bundle);
    if (!p->line || !load(p, path, &error)) {
        complain(p, p->line ? error.message : "out of memory");
        cleanup(p);
        return NULL;
    }
    (void)snprintf(p->heard, sizeof p->heard, "%s", path);
    return p;
}

static void connect(LV2_Handle handle, uint32_t index, void *data) {
    plugin *p = handle;
    if (index == CONTROL)
        p->control = data;
    else if (index == NOTIFY)
        p->notify = data;
    else if (index == LATENCY || index == MISSED)
        p->told[index] = data;
    else if (index < AUDIO)
        p->number[index] = data;
    else if (index < AUDIO + (uint32_t)p->inputs)
        p->in[index - AUDIO] = data;
    else if (index < AUDIO + (uint32_t)p->inputs + OUTPUTS)
        p->out[index - AUDIO - (uint32_t)p->inputs] = data;
}

static void activate(LV2_Handle handle) {
    plugin *p = handle;
    memset(p->line, 0, (size_t)(p->room * p->inputs) * sizeof *p->line);
    p->at = p->fading = 0;
    p->delay = p->older = -1; /* as the first block has it, without a fade */
    p->wet = p->dry = -1;
}

/* ---- The audio thread -------------------------------------------------------------------------------------------- */

static float factor(const float *decibels) {
    return !decibels || *decibels <= -90 ? 0 : powf(10, *decibels / 20);
}

/* A response asked for: patch:Set of our property. */
static void hear(plugin *p) {
    if (!p->control || !p->map)
        return;
    LV2_ATOM_SEQUENCE_FOREACH(p->control, event) {
        const LV2_Atom_Object *object = (const LV2_Atom_Object *)&event->body;
        if (!lv2_atom_forge_is_object_type(&p->forge, event->body.type))
            continue;
        if (object->body.otype == p->uri.get) {
            p->tell = true;
            continue;
        }
        const LV2_Atom *property = NULL, *value = NULL;
        if (object->body.otype != p->uri.set)
            continue;
        lv2_atom_object_get(object, p->uri.property, &property, p->uri.value, &value, 0);
        if (!property || property->type != p->uri.urid || ((const LV2_Atom_URID *)property)->body != p->uri.response ||
            !value || value->type != p->uri.path || value->size < 2 || value->size > PATH_MOST || !p->worker)
            continue;
        message m;
        m.length = (uint32_t)strnlen(LV2_ATOM_BODY_CONST(value), value->size - 1);
        memcpy(m.path, LV2_ATOM_BODY_CONST(value), m.length);
        m.path[m.length] = '\0';
        (void)p->worker->schedule_work(p->worker->handle, (uint32_t)(offsetof(message, path) + m.length + 1), &m);
    }
}

static void speak(plugin *p) {
    if (!p->notify || !p->map)
        return;
    uint32_t capacity = p->notify->atom.size;
    LV2_Atom_Forge_Frame sequence, object;
    lv2_atom_forge_set_buffer(&p->forge, (uint8_t *)p->notify, capacity);
    lv2_atom_forge_sequence_head(&p->forge, &sequence, 0);
    if (p->tell) {
        lv2_atom_forge_frame_time(&p->forge, 0);
        lv2_atom_forge_object(&p->forge, &object, 0, p->uri.set);
        lv2_atom_forge_key(&p->forge, p->uri.property);
        lv2_atom_forge_urid(&p->forge, p->uri.response);
        lv2_atom_forge_key(&p->forge, p->uri.value);
        lv2_atom_forge_path(&p->forge, p->heard, (uint32_t)strlen(p->heard));
        lv2_atom_forge_pop(&p->forge, &object);
        p->tell = false;
    }
    lv2_atom_forge_pop(&p->forge, &sequence);
}

/* Takes n frames into the delay line and gives what was there `delay` frames ago, one delay faded into the next. */
static void delay(plugin *p, int64_t from, int64_t n, float *const *to) {
    int64_t wanted = (int64_t)lrintf((p->number[PREDELAY] ? *p->number[PREDELAY] : 0) * 1e-3f * (float)p->rate);
    wanted = wanted < 0 ? 0 : wanted > p->room - CHUNK ? p->room - CHUNK : wanted;
    if (p->delay < 0)
        p->delay = p->older = wanted;
    if (wanted != p->delay && p->fading == 0) {
        p->older = p->delay;
        p->delay = wanted;
        p->fading = p->fade;
    }
    for (int64_t i = 0; i < n; i++) {
        float part = p->fading > 0 ? (float)p->fading / (float)p->fade : 0;
        for (int c = 0; c < p->inputs; c++) {
            float *line = p->line + c * p->room;
            line[p->at] = p->in[c][from + i];
            float now = line[(p->at + p->room - p->delay) % p->room];
            float then = line[(p->at + p->room - p->older) % p->room];
            to[c][i] = now + part * (then - now);
        }
        p->at = (p->at + 1) % p->room;
        p->fading -= p->fading > 0;
    }
}

static void run(LV2_Handle handle, uint32_t frames) {
    plugin *p = handle;
    float gain = factor(p->number[GAIN]), wet = gain * factor(p->number[WET]), dry = gain * factor(p->number[DRY]);
    float *to[] = {p->block[0], p->block[1]}, *made[] = {p->block[2], p->block[3]};
    hear(p);
    speak(p);
    gpuconv_realtime_patient(p->realtime, p->number[FREEWHEEL] && *p->number[FREEWHEEL] > 0);
    if (p->wet < 0) {
        p->wet = wet;
        p->dry = dry;
    }
    float steps = frames > 0 ? (float)frames : 1, wet_step = (wet - p->wet) / steps, dry_step = (dry - p->dry) / steps;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = frames - at < CHUNK ? frames - at : CHUNK;
        delay(p, at, n, to);
        gpuconv_realtime_process(p->realtime, (const float *const *)to, made, n);
        for (int64_t i = 0; i < n; i++) {
            p->wet += wet_step;
            p->dry += dry_step;
            /* Read before it is written: a host may have given one buffer for both. */
            float left = p->in[0][at + i], right = p->in[p->inputs - 1][at + i];
            p->out[0][at + i] = p->wet * made[0][i] + p->dry * left;
            p->out[1][at + i] = p->wet * made[1][i] + p->dry * right;
        }
    }
    p->wet = wet;
    p->dry = dry;
    if (p->told[LATENCY])
        *p->told[LATENCY] = (float)atomic_load(&p->lead);
    if (p->told[MISSED])
        *p->told[MISSED] = (float)gpuconv_realtime_missed(p->realtime);
}

/* ---- State ------------------------------------------------------------------------------------------------------- */

static void *feature(const LV2_Feature *const *features, const char *uri) {
    for (; features && *features; features++)
        if (strcmp((*features)->URI, uri) == 0)
            return (*features)->data;
    return NULL;
}

static void release(const LV2_State_Free_Path *how, char *path) {
    if (how)
        how->free_path(how->handle, path);
    else
        free(path);
}

static LV2_State_Status save(LV2_Handle handle, LV2_State_Store_Function store, LV2_State_Handle to, uint32_t flags,
                             const LV2_Feature *const *features) {
    plugin *p = handle;
    LV2_State_Map_Path *map = feature(features, LV2_STATE__mapPath);
    (void)flags;
    if (!p->map)
        return LV2_STATE_ERR_NO_FEATURE;
    char *path = map ? map->abstract_path(map->handle, p->path) : NULL;
    const char *kept = path ? path : p->path;
    LV2_State_Status status = store(to, p->uri.response, kept, strlen(kept) + 1, p->uri.path,
                                    LV2_STATE_IS_POD | (map ? LV2_STATE_IS_PORTABLE : 0));
    if (path)
        release(feature(features, LV2_STATE__freePath), path);
    return status;
}

static LV2_State_Status restore(LV2_Handle handle, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                uint32_t flags, const LV2_Feature *const *features) {
    plugin *p = handle;
    size_t size;
    uint32_t type, how;
    LV2_State_Map_Path *map = feature(features, LV2_STATE__mapPath);
    gpuconv_error error = {GPUCONV_OK, ""};
    (void)flags;
    const char *kept = p->map ? retrieve(from, p->uri.response, &size, &type, &how) : NULL;
    if (!kept || type != p->uri.path)
        return LV2_STATE_SUCCESS;
    char *path = map ? map->absolute_path(map->handle, kept) : NULL;
    bool good = load(p, path ? path : kept, &error);
    if (!good)
        complain(p, error.message);
    if (path)
        release(feature(features, LV2_STATE__freePath), path);
    if (good) { /* the audio thread does not run while a state is restored */
        memcpy(p->heard, p->path, sizeof p->heard);
        p->tell = true;
    }
    return good ? LV2_STATE_SUCCESS : LV2_STATE_ERR_UNKNOWN;
}

static const void *extension(const char *uri) {
    static const LV2_Worker_Interface worker = {work, work_response, NULL};
    static const LV2_State_Interface state = {save, restore};
    return strcmp(uri, LV2_WORKER__interface) == 0  ? (const void *)&worker
           : strcmp(uri, LV2_STATE__interface) == 0 ? (const void *)&state
                                                    : NULL;
}

LV2_SYMBOL_EXPORT const LV2_Descriptor *lv2_descriptor(uint32_t index) {
    static const LV2_Descriptor descriptors[] = {
        {PLUGIN_URI "stereo", instantiate, connect, activate, run, NULL, cleanup, extension},
        {PLUGIN_URI "mono", instantiate, connect, activate, run, NULL, cleanup, extension},
    };
    return index < sizeof descriptors / sizeof *descriptors ? &descriptors[index] : NULL;
}
