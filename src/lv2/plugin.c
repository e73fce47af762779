/*
 * The convolver as an LV2 plug-in: one or two channels in, two out.
 *
 * The response is a property, the path of a file. Hosts set it by a message, which goes to the worker: there the file
 * is read, prepared, and exchanged for the response that sounds, faded over. The audio thread runs
 * gpuconv_realtime_process, a delay line and two gains. Until the host sets a response, that of the bundle sounds.
 *
 * Threads: work, save and restore may run at the same time. `loading` is held while a response is loaded, so that the
 * last one loaded sounds, is saved and is told; `lock` is held only while `path` is copied, so that save never waits
 * for a file. The audio thread takes neither: it learns a path from the message that comes back from the worker.
 * Responses are numbered as they are loaded; a message about one that was replaced meanwhile is dropped.
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
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_URI "urn:gpuconv:"
#define RESPONSE_URI PLUGIN_URI "response"

enum { CHUNK = 256, OUTPUTS = 2, PATH_MOST = 4096, LEVEL_MOST = 24 };

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
    _Atomic double lead;                          /* frames of the response before its time zero */
    pthread_mutex_t loading;                      /* one response at a time; never taken by the audio thread */
    pthread_mutex_t lock;                         /* of `path`; never taken by the audio thread */
    char path[PATH_MOST];                         /* of the response that was loaded last */
    _Atomic uint32_t loaded;                      /* how many responses were loaded */
    char heard[PATH_MOST];                        /* the path that the audio thread tells the host */
    bool tell;                                    /* the host asked, or the response is another one */
    float wet, dry;                               /* factors as they stand */
    float *line;                                  /* the predelay's delay line, a channel after another */
    int64_t room, at, delay, older, fading, fade; /* frames; `older` fades into `delay` */
    float block[4][CHUNK];
} plugin;

/* The message to the worker and back. */
typedef struct message {
    uint32_t loaded; /* on the way back: the number of the response */
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

/* Loads with `loading` held. */
static bool load_alone(plugin *p, const char *path, uint32_t *number, gpuconv_error *error) {
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
        pthread_mutex_lock(&p->lock);
        (void)snprintf(p->path, sizeof p->path, "%s", path);
        pthread_mutex_unlock(&p->lock);
        *number = atomic_fetch_add(&p->loaded, 1) + 1;
    }
    gpuconv_ir_free(ir);
    return !status;
}

/* Loads a response and exchanges it for the one that sounds; on any thread but the audio thread. `path` is shorter than
 * PATH_MOST. @return whether it was loaded; *number is then its number. */
static bool load(plugin *p, const char *path, uint32_t *number, gpuconv_error *error) {
    pthread_mutex_lock(&p->loading);
    bool good = load_alone(p, path, number, error);
    pthread_mutex_unlock(&p->loading);
    return good;
}

static uint32_t message_size(const message *m) {
    return (uint32_t)(offsetof(message, path) + m->length + 1);
}

/* Copies a message out of the host's hands, where it need not be aligned. false: it is none of ours. */
static bool take_message(message *m, uint32_t size, const void *data) {
    if (size <= offsetof(message, path) || size > sizeof *m)
        return false;
    memcpy(m, data, size);
    return m->length < PATH_MOST && message_size(m) == size &&
           memchr(m->path, '\0', m->length + 1) == m->path + m->length;
}

static LV2_Worker_Status work(LV2_Handle handle, LV2_Worker_Respond_Function respond, LV2_Worker_Respond_Handle to,
                              uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    gpuconv_error error = {GPUCONV_OK, ""};
    if (!take_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (!load(p, m.path, &m.loaded, &error)) {
        complain(p, error.message);
        return LV2_WORKER_ERR_UNKNOWN;
    }
    return respond(to, message_size(&m), &m);
}

/* Takes the worker's answer on the audio thread; the next block tells the host which response sounds. */
static LV2_Worker_Status work_response(LV2_Handle handle, uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    if (!take_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (m.loaded == atomic_load(&p->loaded)) { /* else another response was loaded meanwhile */
        memcpy(p->heard, m.path, m.length + 1);
        p->tell = true;
    }
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
    pthread_mutex_destroy(&p->loading);
    pthread_mutex_destroy(&p->lock);
    free(p->line);
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
    pthread_mutex_init(&p->lock, NULL);
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
    if (!p->line || !load(p, path, &number, &error)) {
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

/* A level port's factor; the range is that of the port. What is no number counts as silence. */
static float factor(const float *decibels) {
    return !decibels || !(*decibels > -90) ? 0 : powf(10, fminf(*decibels, LEVEL_MOST) / 20);
}

/* A walk over atoms that another program made: no size in them is believed. */
typedef struct walk {
    const uint8_t *at;
    uint64_t left; /* bytes */
} walk;

/* Takes `size` bytes, and as many as fill them up to eight bytes. NULL: there are fewer than `size`. */
static const void *take(walk *w, uint64_t size) {
    uint64_t padded = (size + 7) & ~(uint64_t)7;
    const void *here = w->at;
    if (size > w->left)
        return NULL;
    padded = padded < w->left ? padded : w->left;
    w->at += padded;
    w->left -= padded;
    return here;
}

/* Takes an event's or a property's head of `size` bytes, which ends with an atom, and the atom's body behind it. */
static const void *take_atom(walk *w, size_t size, const LV2_Atom **atom) {
    if (size > w->left)
        return NULL;
    const uint8_t *head = w->at;
    *atom = (const LV2_Atom *)(const void *)(head + size - sizeof **atom); /* eight bytes are kept as alignment */
    return take(w, size + (uint64_t)(*atom)->size);
}

/* Schedules the work when the object is a patch:Set of our property to a path. */
static void hear_set(const plugin *p, walk object) {
    const LV2_Atom *property = NULL, *value = NULL, *atom;
    const LV2_Atom_Property_Body *item;
    while ((item = take_atom(&object, sizeof *item, &atom))) {
        if (item->key == p->uri.property)
            property = atom;
        else if (item->key == p->uri.value)
            value = atom;
    }
    if (!property || property->type != p->uri.urid || property->size < sizeof(LV2_URID) ||
        *(const LV2_URID *)(property + 1) != p->uri.response || !value || value->type != p->uri.path || !p->worker)
        return;
    const char *path = (const char *)(value + 1);
    message m = {.length = (uint32_t)strnlen(path, value->size)};
    if (m.length == 0 || m.length >= PATH_MOST)
        return;
    memcpy(m.path, path, m.length);
    m.path[m.length] = '\0';
    (void)p->worker->schedule_work(p->worker->handle, message_size(&m), &m);
}

/* Reads the host's messages: patch:Set of the response, patch:Get. */
static void hear(plugin *p) {
    if (!p->control || !p->map || p->control->atom.size < sizeof(LV2_Atom_Sequence_Body))
        return;
    walk events = {(const uint8_t *)(&p->control->body + 1),
                   p->control->atom.size - (uint64_t)sizeof(LV2_Atom_Sequence_Body)};
    const LV2_Atom *atom;
    while (take_atom(&events, sizeof(LV2_Atom_Event), &atom)) {
        if (!lv2_atom_forge_is_object_type(&p->forge, atom->type) || atom->size < sizeof(LV2_Atom_Object_Body))
            continue;
        const LV2_Atom_Object_Body *body = (const LV2_Atom_Object_Body *)(atom + 1);
        if (body->otype == p->uri.get)
            p->tell = true;
        else if (body->otype == p->uri.set)
            hear_set(p, (walk){(const uint8_t *)(body + 1), atom->size - (uint64_t)sizeof *body});
    }
}

/* Writes a patch:Set of the response that sounds. @return whether there was room. */
static bool speak_path(plugin *p) {
    LV2_Atom_Forge_Frame object;
    LV2_Atom_Forge *f = &p->forge;
    uint32_t length = (uint32_t)strlen(p->heard);
    bool good = lv2_atom_forge_frame_time(f, 0) && lv2_atom_forge_object(f, &object, 0, p->uri.set) &&
                lv2_atom_forge_key(f, p->uri.property) && lv2_atom_forge_urid(f, p->uri.response) &&
                lv2_atom_forge_key(f, p->uri.value) && lv2_atom_forge_path(f, p->heard, length);
    if (good)
        lv2_atom_forge_pop(f, &object);
    return good;
}

/* Writes the messages to the host: none, or the response that sounds. A buffer without room for it stays empty. */
static void speak(plugin *p) {
    if (!p->notify || !p->map)
        return;
    uint32_t capacity = p->notify->atom.size;
    LV2_Atom_Forge_Frame sequence;
    for (int tries = p->tell ? 2 : 1; tries > 0; tries--) {
        lv2_atom_forge_set_buffer(&p->forge, (uint8_t *)p->notify, capacity);
        if (!lv2_atom_forge_sequence_head(&p->forge, &sequence, 0)) {
            p->notify->atom.size = 0;
            return;
        }
        if (tries == 1 || speak_path(p))
            break;
    }
    p->forge.stack = NULL; /* what did not fit is not closed */
    p->tell = false;
}

/* Takes n frames into the delay line and gives what was there `delay` frames ago, one delay faded into the next. */
static void delay(plugin *p, int64_t from, int64_t n, float *const *to) {
    float frames = (p->number[PREDELAY] ? *p->number[PREDELAY] : 0) * 1e-3f * (float)p->rate;
    frames = frames > 0 ? fminf(frames, (float)(p->room - CHUNK)) : 0; /* also where it is no number */
    int64_t wanted = (int64_t)lrintf(frames);
    wanted = wanted > p->room - CHUNK ? p->room - CHUNK : wanted;
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
    gpuconv_realtime_set_freewheel(p->realtime, p->number[FREEWHEEL] && *p->number[FREEWHEEL] > 0);
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
        *p->told[MISSED] = (float)gpuconv_realtime_late_blocks(p->realtime);
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
    char here[PATH_MOST];
    (void)flags;
    if (!p->map)
        return LV2_STATE_ERR_NO_FEATURE;
    pthread_mutex_lock(&p->lock);
    memcpy(here, p->path, sizeof here);
    pthread_mutex_unlock(&p->lock);
    char *path = map ? map->abstract_path(map->handle, here) : NULL;
    const char *kept = path ? path : here;
    LV2_State_Status status = store(to, p->uri.response, kept, strlen(kept) + 1, p->uri.path,
                                    LV2_STATE_IS_POD | (map ? LV2_STATE_IS_PORTABLE : 0));
    if (path)
        release(feature(features, LV2_STATE__freePath), path);
    return status;
}

/* Hosts do not call run meanwhile, so that the audio thread's part may be written here. */
static LV2_State_Status restore(LV2_Handle handle, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                uint32_t flags, const LV2_Feature *const *features) {
    plugin *p = handle;
    size_t size = 0;
    uint32_t type = 0, how = 0, number;
    LV2_State_Map_Path *map = feature(features, LV2_STATE__mapPath);
    gpuconv_error error = {GPUCONV_OK, ""};
    (void)flags;
    const char *kept = p->map ? retrieve(from, p->uri.response, &size, &type, &how) : NULL;
    if (!kept)
        return LV2_STATE_SUCCESS; /* a state without a response leaves the one that sounds */
    if (type != p->uri.path || size < 2 || size > PATH_MOST || memchr(kept, '\0', size) != kept + size - 1) {
        complain(p, "the state's response is not a path of 1 to 4095 bytes");
        return LV2_STATE_ERR_BAD_TYPE;
    }
    char *path = map ? map->absolute_path(map->handle, kept) : NULL;
    const char *wanted = path ? path : kept;
    bool good = strlen(wanted) < PATH_MOST;
    if (!good)
        (void)snprintf(error.message, sizeof error.message, "the state's response: a path of more than 4095 bytes");
    good = good && load(p, wanted, &number, &error);
    if (good) {
        (void)snprintf(p->heard, sizeof p->heard, "%s", wanted);
        p->tell = true;
    } else {
        complain(p, error.message);
    }
    if (path)
        release(feature(features, LV2_STATE__freePath), path);
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
