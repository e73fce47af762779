/* Loads responses for the LV2 plug-in on the host's worker thread, reads and writes the atom messages that ask for them
 * on the audio thread, and saves and restores the paths. A path that cannot be loaded is saved again. */
#include "plugin.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/util.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const double fade_seconds = 0.05, look_seconds = 2;

/* The message to the worker and its response. Only `length` + 1 bytes of the text are sent. */
typedef struct message {
    enum { LOAD, EDIT, LOOK } kind; /* EDIT: the current responses; LOOK: for a missing one; both without a path */
    int slot;
    uint32_t load_number; /* set by the worker */
    edits wanted;
    int failed; /* set by the worker; no bool, as in edits */
    uint32_t length;
    char text[PATH_MOST]; /* the path; after a failure the reason */
} message;

void gc_lv2_log_error(plugin *p, const char *text) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t from = atomic_load(&p->log_from);
    if (now.tv_sec < from || !atomic_compare_exchange_strong(&p->log_from, &from, now.tv_sec + 2)) {
        atomic_fetch_add(&p->unlogged, 1);
        return;
    }
    const int more = atomic_exchange(&p->unlogged, 0);
    if (more)
        lv2_log_error(&p->log, "gpuconv: %s (%d other errors before it were left out)\n", text, more);
    else
        lv2_log_error(&p->log, "gpuconv: %s\n", text);
}

/* ---- The response ------------------------------------------------------------------------------------------------ */

float gc_lv2_limited(const float *value, float least, float most) {
    return value && *value > least ? fminf(*value, most) : least;
}

/* Returns the edits that the ports ask for, limited to their ranges. */
static edits lv2_port_edits(const plugin *p) {
    if (p->form.is_space)
        return (edits){.stretch = 1,
                       .osc_port = gc_lv2_limited(p->parameter[TRACKED], 0, 1) > 0
                                       ? (int)gc_lv2_limited(p->parameter[OSC_PORT], 1024, 65535)
                                       : 0};
    const float *trim = p->parameter[TRIM], *stretch = p->parameter[STRETCH];
    return (edits){.start = gc_lv2_limited(p->parameter[START], 0, 30),
                   .length = gc_lv2_limited(p->parameter[LENGTH], 0, 60),
                   .fade = gc_lv2_limited(p->parameter[FADE], 0, 30),
                   .stretch = stretch && isfinite(*stretch) ? gc_lv2_limited(stretch, 0.25F, 4) : 1,
                   .trim = trim && isfinite(*trim) ? gc_lv2_limited(trim, -120, 0) : 0,
                   .attack = gc_lv2_limited(p->parameter[ATTACK], 0, 1000),
                   .reverse = gc_lv2_limited(p->parameter[REVERSE], 0, 1) > 0,
                   .autogain = gc_lv2_limited(p->parameter[AUTOGAIN], 0, 1) > 0};
}

static bool is_same(const edits *a, const edits *b) {
    return a->start == b->start && a->length == b->length && a->fade == b->fade && a->stretch == b->stretch &&
           a->trim == b->trim && a->attack == b->attack && a->reverse == b->reverse && a->autogain == b->autogain &&
           a->osc_port == b->osc_port;
}

/* Prepares a matrix of one input for the plug-in's two lanes, of which it hears the first. */
static gpuconv_status prepare_single(const char *path, const gpuconv_preparation *how, double rate, gpuconv_ir **ir,
                                     gpuconv_error *error) {
    gpuconv_ir *single;
    gpuconv_status status = gpuconv_ir_prepare(path, how, 1, rate, &single, error);
    if (status)
        return status;
    const int second = gpuconv_ir_outputs(single) == 1 ? 0 : 1;
    const float *const taps[] = {gpuconv_ir_taps(single, 0, 0), gpuconv_ir_taps(single, 0, second), NULL, NULL};
    status = gpuconv_ir_new_matrix(taps, 2, OUTPUTS, gpuconv_ir_frames(single), rate, ir, error);
    gpuconv_ir_free(single);
    return status;
}

/* Fades the response in and normalises it, as asked for. A silent one keeps its level. */
static gpuconv_status finish(const edits *wanted, gpuconv_ir **ir, gpuconv_error *error) {
    const double attack = (double)wanted->attack * 1e-3 * gpuconv_ir_rate(*ir);
    gpuconv_ir *made;
    if (attack > 0) {
        gpuconv_status status = gpuconv_ir_fade(*ir, gpuconv_ir_lead(*ir) + llrint(attack), 0, &made, error);
        if (status)
            return status;
        gpuconv_ir_free(*ir);
        *ir = made;
    }
    if (!wanted->autogain)
        return GPUCONV_OK;
    gpuconv_status status = gpuconv_ir_normalize(*ir, GPUCONV_NORMALIZE_ENERGY, NULL, &made, error);
    if (status)
        return status == GPUCONV_ERROR_FORMAT ? GPUCONV_OK : status;
    gpuconv_ir_free(*ir);
    *ir = made;
    return GPUCONV_OK;
}

/* Reads, edits and routes a response for two inputs; the plug-in with one input feeds both. */
static gpuconv_status prepare_edited(const plugin *p, const char *path, const edits *wanted, gpuconv_ir **ir,
                                     gpuconv_error *error) {
    gpuconv_preparation how = gpuconv_preparation_default();
    how.start = (double)wanted->start;
    how.length = (double)wanted->length;
    how.fade = (double)wanted->fade;
    how.stretch = (double)wanted->stretch;
    how.trim = (double)wanted->trim;
    how.reverse = wanted->reverse != 0;
    how.file_rate = p->rate; /* of a file that states none */
    gpuconv_status status = gpuconv_ir_prepare(path, &how, 2, p->rate, ir, error);
    if (status == GPUCONV_ERROR_TOPOLOGY && p->form.inputs == 1)
        status = prepare_single(path, &how, p->rate, ir, error);
    if (status)
        return status;
    status = finish(wanted, ir, error);
    if (status)
        gpuconv_ir_free(*ir);
    return status;
}

/* Prepares a response for the plug-in. A start behind its end leaves the last millisecond, so that a port's value never
 * silences the plug-in. */
static gpuconv_status prepare(const plugin *p, const char *path, const edits *wanted, gpuconv_ir **ir,
                              gpuconv_error *error) {
    edits fitting = *wanted;
    gpuconv_status status;
    if (fitting.start > 0) {
        const edits plain = {.stretch = 1};
        status = prepare_edited(p, path, &plain, ir, error);
        if (status)
            return status;
        double last = (double)(gpuconv_ir_frames(*ir) - gpuconv_ir_lead(*ir)) / gpuconv_ir_rate(*ir) - 1e-3;
        fitting.start = fminf(fitting.start, last > 0 ? (float)last : 0);
        gpuconv_ir_free(*ir);
    }
    status = prepare_edited(p, path, &fitting, ir, error);
    if (status || gpuconv_ir_outputs(*ir) == OUTPUTS)
        return status;
    gpuconv_ir_free(*ir);
    error->status = GPUCONV_ERROR_TOPOLOGY;
    (void)snprintf(error->message, sizeof error->message, "%.400s: the response must have 1, 2 or 4 channels", path);
    return error->status;
}

/* Makes a response of one silent frame, which takes the place of a response that is unloaded. */
static gpuconv_status prepare_silence(double rate, gpuconv_ir **ir, gpuconv_error *error) {
    static const float silence;
    return gpuconv_ir_new_matrix((const float *const[]){&silence, &silence, &silence, &silence}, 2, OUTPUTS, 1, rate,
                                 ir, error);
}

/* Prepares a response, "" for none, and exchanges it for that of its slot. Returns the errors of the library. */
static gpuconv_status exchange(plugin *p, slot *s, const char *path, const edits *wanted, gpuconv_error *error) {
    gpuconv_ir *ir;
    gpuconv_realtime *realtime = atomic_load(&s->realtime);
    if (!*path && !realtime)
        return GPUCONV_OK;
    gpuconv_status status = *path ? prepare(p, path, wanted, &ir, error) : prepare_silence(p->rate, &ir, error);
    if (status)
        return status;
    const int64_t frames = gpuconv_ir_frames(ir), longest = atomic_load(&s->frames);
    if (realtime) {
        status = gpuconv_realtime_swap(realtime, ir, atomic_load(&p->started) ? fade_seconds : 0, error);
    } else {
        gpuconv_realtime_config config = {.size = sizeof config, .rate = p->rate, .block = CHUNK};
        status = gpuconv_realtime_new(ir, &config, &realtime, error);
    }
    if (!status) {
        atomic_store(&s->lead, (double)gpuconv_ir_lead(ir));
        atomic_store(&s->frames, frames > longest ? frames : longest);
        atomic_store(&s->realtime, realtime);
        atomic_store(&s->present, *path != '\0');
    }
    gpuconv_ir_free(ir);
    return status;
}

/* Loads the response or the set at a path into a slot, or, without a path, edits it. Returns the same errors. */
static gpuconv_status load_slot(plugin *p, slot *s, const char *path, const edits *wanted, gpuconv_error *error) {
    const gpuconv_status status = !p->form.is_space ? exchange(p, s, path ? path : s->path, wanted, error)
                                  : path            ? gc_lv2_load_space(p, path, error)
                                                    : gc_lv2_track_head(p, wanted->osc_port, error);
    if (status)
        return status;
    if (!p->form.is_space || !path)
        s->loaded = *wanted;
    if (path) {
        pthread_mutex_lock(&p->path_lock);
        (void)snprintf(s->path, sizeof s->path, "%s", path);
        *s->missing = '\0';
        pthread_mutex_unlock(&p->path_lock);
        atomic_store(&s->is_missing, false);
    }
    return status;
}

/* ---- Missing responses ------------------------------------------------------------------------------------------- */

static file_state look_at(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0)
        return (file_state){0};
    return (file_state){(uint64_t)st.st_ino, (int64_t)st.st_size, (int64_t)st.st_ctime};
}

/* Loads a response at a path into its slot; requires `loading`. */
static gpuconv_status load_path(plugin *p, load *l, const edits *wanted, gpuconv_error *error) {
    slot *s = &p->slot[l->slot];
    const file_state before = look_at(l->path);
    const gpuconv_status status = load_slot(p, s, l->path, wanted, error);
    l->number = status ? 0 : atomic_fetch_add(&s->load_count, 1) + 1;
    if (status && l->keep) {
        pthread_mutex_lock(&p->path_lock);
        (void)snprintf(s->missing, sizeof s->missing, "%s", l->path);
        pthread_mutex_unlock(&p->path_lock);
        s->tried = before;
        atomic_store(&s->is_missing, true);
    }
    return status;
}

/* Loads the first missing response whose file is there, unless it is the one that failed before, and makes the message
 * that of its load. @return false: none */
static bool load_missing(plugin *p, message *m) {
    gpuconv_error error = {GPUCONV_OK, ""};
    bool good = false;
    pthread_mutex_lock(&p->loading);
    for (int i = 0; i < SLOTS && !good; i++) {
        const slot *s = &p->slot[i];
        const file_state now = look_at(s->missing), *before = &s->tried;
        load l = {.slot = i, .path = m->text, .keep = true};
        if (!*s->missing || !now.inode ||
            (now.inode == before->inode && now.bytes == before->bytes && now.changed == before->changed))
            continue;
        m->length = (uint32_t)snprintf(m->text, sizeof m->text, "%s", s->missing);
        good = load_path(p, &l, &m->wanted, &error) == GPUCONV_OK;
        m->kind = LOAD;
        m->slot = i;
        m->load_number = l.number;
    }
    pthread_mutex_unlock(&p->loading);
    return good;
}

static bool any_missing(const plugin *p) {
    return atomic_load(&p->slot[0].is_missing) || atomic_load(&p->slot[1].is_missing);
}

bool gc_lv2_load(plugin *p, load *l, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    pthread_mutex_lock(&p->loading);
    const edits wanted = l->wanted ? *l->wanted : p->slot[0].loaded;
    if (l->path)
        status = load_path(p, l, &wanted, error);
    for (int i = 0; i < SLOTS && !l->path && !status; i++) /* only loads write the paths */
        if (*p->slot[i].path && !is_same(&p->slot[i].loaded, &wanted))
            status = load_slot(p, &p->slot[i], NULL, &wanted, error);
    pthread_mutex_unlock(&p->loading);
    return !status;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static uint32_t message_size(const message *m) {
    return (uint32_t)(offsetof(message, text) + m->length + 1);
}

/* Copies a message from the host's buffer, which may be unaligned. @return false if it is malformed */
static bool copy_message(message *m, uint32_t size, const void *data) {
    if (size <= offsetof(message, text) || size > sizeof *m)
        return false;
    memcpy(m, data, size);
    return m->slot >= 0 && m->slot < SLOTS && m->length < PATH_MOST && message_size(m) == size &&
           memchr(m->text, '\0', m->length + 1) == m->text + m->length;
}

/* Sends a message to the worker. @return false: the host has no worker, or no room for the message */
static bool schedule(plugin *p, const message *m) {
    return p->worker && p->worker->schedule_work(p->worker->handle, message_size(m), m) == LV2_WORKER_SUCCESS;
}

/* Asks the worker to load a response; called on the audio thread. An empty path unloads the second response. Ignored
 * are a path that is too long, and an empty path of the first response.
 * @param length of the path, which need not end with a null character */
static void lv2_schedule_load(plugin *p, int number, const char *path, size_t length) {
    message m = {.slot = number, .length = (uint32_t)length, .wanted = lv2_port_edits(p)};
    if ((length == 0 && number == 0) || length >= PATH_MOST)
        return;
    memcpy(m.text, path, length);
    m.text[length] = '\0';
    (void)schedule(p, &m);
}

void gc_lv2_follow_edits(plugin *p) {
    message m = {.kind = EDIT, .wanted = lv2_port_edits(p)};
    if (p->loads || is_same(&m.wanted, &p->requested))
        return;
    if (p->parameter[FREEWHEEL] && *p->parameter[FREEWHEEL] > 0) {
        gpuconv_error error = {GPUCONV_OK, ""};
        load l = {.wanted = &m.wanted};
        p->requested = m.wanted;
        if (!gc_lv2_load(p, &l, &error))
            gc_lv2_log_error(p, error.message);
        if (*error.message || !any_missing(p)) {
            p->announce = p->announce || strcmp(p->error, error.message) != 0;
            (void)snprintf(p->error, sizeof p->error, "%s", error.message);
        }
    } else if (schedule(p, &m)) {
        p->requested = m.wanted;
        p->loads = true;
    }
}

void gc_lv2_look_for_missing(plugin *p, int64_t frames) {
    p->looked = any_missing(p) ? p->looked + frames : 0;
    if ((double)p->looked < look_seconds * p->rate || p->loads || atomic_exchange(&p->looks, true))
        return;
    const message m = {.kind = LOOK, .wanted = lv2_port_edits(p)};
    p->looked = 0;
    if (!schedule(p, &m))
        atomic_store(&p->looks, false);
}

/* Loads the response that a message names or edits the current one; runs on the worker thread. */
static LV2_Worker_Status work(LV2_Handle handle, LV2_Worker_Respond_Function respond, LV2_Worker_Respond_Handle to,
                              uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    gpuconv_error error = {GPUCONV_OK, ""};
    if (!copy_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (m.kind == LOOK) {
        const bool found = load_missing(p, &m);
        atomic_store(&p->looks, false);
        return found ? respond(to, message_size(&m), &m) : LV2_WORKER_SUCCESS;
    }
    load l = {.slot = m.slot, .path = m.kind == LOAD ? m.text : NULL, .wanted = &m.wanted};
    bool good = gc_lv2_load(p, &l, &error);
    m.load_number = l.number;
    if (!good) {
        gc_lv2_log_error(p, error.message);
        m.failed = 1;
        (void)snprintf(m.text, sizeof m.text, "%s", error.message);
        m.length = (uint32_t)strlen(m.text);
    }
    LV2_Worker_Status sent = respond(to, message_size(&m), &m);
    return good ? sent : LV2_WORKER_ERR_UNKNOWN;
}

/* Receives the worker's response on the audio thread; the next block announces the path to the host. */
static LV2_Worker_Status work_response(LV2_Handle handle, uint32_t size, const void *data) {
    plugin *p = handle;
    message m;
    if (!copy_message(&m, size, data))
        return LV2_WORKER_ERR_UNKNOWN;
    if (m.kind == EDIT)
        p->loads = false;
    if (m.kind == EDIT || !m.failed)
        p->requested = m.wanted; /* replies come in the order of the loads: the response that sounds was edited so */
    if (m.kind == LOAD && !m.failed)
        p->requested.stretch = 0; /* equals that of no port: the other response is edited in the same way */
    if (m.failed || (*p->error && (m.kind == LOAD || !any_missing(p)))) {
        const uint32_t length = !m.failed ? 0 : m.length < ERROR_MOST ? m.length : ERROR_MOST - 1;
        memcpy(p->error, m.text, length);
        p->error[length] = '\0';
        p->announce = true;
    }
    if (m.kind == LOAD && !m.failed &&
        m.load_number == atomic_load(&p->slot[m.slot].load_count)) { /* otherwise another has been loaded since */
        memcpy(p->slot[m.slot].announced_path, m.text, m.length + 1);
        p->slot[m.slot].emptied = m.length == 0;
        p->announce = true;
    }
    return LV2_WORKER_SUCCESS;
}

const LV2_Worker_Interface gc_lv2_worker = {work, work_response, NULL};

/* ---- Messages of the host ---------------------------------------------------------------------------------------- */

/* A position in atoms that another program wrote; every size in them is checked before it is used. */
typedef struct atom_cursor {
    const uint8_t *position;
    uint64_t left; /* bytes */
} atom_cursor;

/* Returns the next `size` bytes and skips the padding to a multiple of eight bytes. @return NULL if fewer bytes are
 * left */
static const void *read_bytes(atom_cursor *c, uint64_t size) {
    uint64_t padded = (size + 7) & ~(uint64_t)7;
    const void *bytes = c->position;
    if (size > c->left)
        return NULL;
    padded = padded < c->left ? padded : c->left;
    c->position += padded;
    c->left -= padded;
    return bytes;
}

/* Returns the header of an event or a property, which has `size` bytes and ends with an atom, and skips the atom's
 * body.
 * @param atom receives the atom @return NULL if the bytes left are too few */
static const void *read_atom(atom_cursor *c, size_t size, const LV2_Atom **atom) {
    if (size > c->left)
        return NULL;
    const uint8_t *header = c->position;
    *atom = (const LV2_Atom *)(const void *)(header + size - sizeof **atom); /* the position is a multiple of 8 bytes */
    return read_bytes(c, size + (uint64_t)(*atom)->size);
}

/* Schedules a load if the object is a patch:Set of the response to a path. */
static void read_set(plugin *p, atom_cursor object) {
    const LV2_Atom *property = NULL, *value = NULL, *atom;
    const LV2_Atom_Property_Body *item;
    while ((item = read_atom(&object, sizeof *item, &atom))) {
        if (item->key == p->uri.property)
            property = atom;
        else if (item->key == p->uri.value)
            value = atom;
    }
    if (!property || property->type != p->uri.urid || property->size < sizeof(LV2_URID) || !value ||
        value->type != p->uri.path)
        return;
    const char *path = (const char *)(value + 1);
    for (int s = 0; s < (p->form.is_space ? 1 : SLOTS); s++)
        if (*(const LV2_URID *)(property + 1) == p->uri.response[s])
            lv2_schedule_load(p, s, path, strnlen(path, value->size));
}

void gc_lv2_read_messages(plugin *p) {
    if (!p->control || !p->map || p->control->atom.size < sizeof(LV2_Atom_Sequence_Body))
        return;
    atom_cursor events = {(const uint8_t *)(&p->control->body + 1),
                          p->control->atom.size - (uint64_t)sizeof(LV2_Atom_Sequence_Body)};
    const LV2_Atom *atom;
    while (read_atom(&events, sizeof(LV2_Atom_Event), &atom)) {
        if (!lv2_atom_forge_is_object_type(&p->forge, atom->type) || atom->size < sizeof(LV2_Atom_Object_Body))
            continue;
        const LV2_Atom_Object_Body *body = (const LV2_Atom_Object_Body *)(atom + 1);
        if (body->otype == p->uri.get)
            p->announce = true;
        else if (body->otype == p->uri.set)
            read_set(p, (atom_cursor){(const uint8_t *)(body + 1), atom->size - (uint64_t)sizeof *body});
    }
}

/* Writes an event: a patch:Set of a property. @return whether it fitted into the buffer */
static bool write_property(plugin *p, LV2_URID property, LV2_URID type, const char *text) {
    return lv2_atom_forge_frame_time(&p->forge, 0) && gc_lv2_write_set(&p->forge, &p->uri, property, type, text);
}

/* Writes the responses and the error. @return whether they fitted into the buffer */
static bool write_properties(plugin *p) {
    bool good = true;
    for (int s = 0; s < SLOTS; s++)
        if (*p->slot[s].announced_path || p->slot[s].emptied)
            good = good && write_property(p, p->uri.response[s], p->uri.path, p->slot[s].announced_path);
    return good && write_property(p, p->uri.error, p->uri.string, p->error);
}

void gc_lv2_write_messages(plugin *p) {
    if (!p->notify || !p->map)
        return;
    uint32_t capacity = p->notify->atom.size;
    LV2_Atom_Forge_Frame sequence;
    /* If the message does not fit, the second attempt writes an empty sequence. */
    for (int attempts = p->announce ? 2 : 1; attempts > 0; attempts--) {
        lv2_atom_forge_set_buffer(&p->forge, (uint8_t *)p->notify, capacity);
        if (!lv2_atom_forge_sequence_head(&p->forge, &sequence, 0)) {
            p->notify->atom.size = 0;
            return;
        }
        if (attempts == 1 || write_properties(p))
            break;
    }
    p->forge.stack = NULL; /* discards the frames of a message that did not fit */
    p->announce = false;
}

/* ---- Saved state ------------------------------------------------------------------------------------------------- */

/* Returns the data of a host feature; NULL: not supported. */
static void *find_feature(const LV2_Feature *const *features, const char *uri) {
    for (; features && *features; features++)
        if (strcmp((*features)->URI, uri) == 0)
            return (*features)->data;
    return NULL;
}

/* Frees a path that the host allocated. */
static void free_path(const LV2_Feature *const *features, char *path) {
    const LV2_State_Free_Path *host = find_feature(features, LV2_STATE__freePath);
    if (host)
        host->free_path(host->handle, path);
    else
        free(path);
}

/* Stores the path of a response. If there is no second response, stores an empty string for it: an empty path is not
 * possible, because hosts take it for the path of a folder. */
static LV2_State_Status save_slot(plugin *p, int s, LV2_State_Store_Function store, LV2_State_Handle to,
                                  const LV2_Feature *const *features) {
    LV2_State_Map_Path *map = find_feature(features, LV2_STATE__mapPath);
    char path[PATH_MOST];
    pthread_mutex_lock(&p->path_lock);
    memcpy(path, *p->slot[s].missing ? p->slot[s].missing : p->slot[s].path, sizeof path);
    pthread_mutex_unlock(&p->path_lock);
    if (!*path)
        return s == 0 || p->form.is_space
                   ? LV2_STATE_SUCCESS
                   : store(to, p->uri.response[s], path, 1, p->uri.string, LV2_STATE_IS_POD | LV2_STATE_IS_PORTABLE);
    char *mapped = map ? map->abstract_path(map->handle, path) : NULL;
    const char *stored = mapped ? mapped : path;
    LV2_State_Status status = store(to, p->uri.response[s], stored, strlen(stored) + 1, p->uri.path,
                                    LV2_STATE_IS_POD | (map ? LV2_STATE_IS_PORTABLE : 0));
    if (mapped)
        free_path(features, mapped);
    return status;
}

static LV2_State_Status save(LV2_Handle handle, LV2_State_Store_Function store, LV2_State_Handle to, uint32_t flags,
                             const LV2_Feature *const *features) {
    plugin *p = handle;
    LV2_State_Status status = p->map ? LV2_STATE_SUCCESS : LV2_STATE_ERR_NO_FEATURE;
    (void)flags;
    for (int s = 0; s < SLOTS && status == LV2_STATE_SUCCESS; s++)
        status = save_slot(p, s, store, to, features);
    return status;
}

/* Loads a saved response, or unloads the second one if the state says that there was none. */
static LV2_State_Status restore_slot(plugin *p, int s, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                     const LV2_Feature *const *features) {
    size_t size = 0;
    uint32_t type = 0, stored_flags = 0;
    LV2_State_Map_Path *map = find_feature(features, LV2_STATE__mapPath);
    gpuconv_error error = {GPUCONV_OK, ""};
    const char *stored = p->map ? retrieve(from, p->uri.response[s], &size, &type, &stored_flags) : NULL;
    if (!stored)
        return LV2_STATE_SUCCESS; /* a state without a response keeps the current one */
    const bool none = s == 1 && type == p->uri.string && size == 1 && !*stored;
    if (!none &&
        (type != p->uri.path || size < 2 || size > PATH_MOST || memchr(stored, '\0', size) != stored + size - 1)) {
        gc_lv2_log_error(p, "the response in the saved state is not a path of 1 to 4095 bytes");
        return LV2_STATE_ERR_BAD_TYPE;
    }
    char *mapped = map && !none ? map->absolute_path(map->handle, stored) : NULL;
    load l = {.slot = s, .path = mapped ? mapped : stored, .keep = !none};
    bool good = strlen(l.path) < PATH_MOST;
    if (!good)
        (void)snprintf(error.message, sizeof error.message,
                       "the path of the response in the saved state is longer than 4095 bytes");
    good = good && gc_lv2_load(p, &l, &error);
    if (good) {
        (void)snprintf(p->slot[s].announced_path, sizeof p->slot[s].announced_path, "%s", l.path);
        p->slot[s].emptied = none;
    } else {
        gc_lv2_log_error(p, error.message);
        (void)snprintf(p->error, sizeof p->error, "%.400s%s", error.message,
                       atomic_load(&p->slot[s].is_missing) ? "; the session keeps it, and it is loaded when it is back"
                                                           : "");
    }
    if (mapped)
        free_path(features, mapped);
    return good ? LV2_STATE_SUCCESS : LV2_STATE_ERR_UNKNOWN;
}

/* Loads the saved responses. Hosts do not call run meanwhile, so the audio thread's members may be written. */
static LV2_State_Status restore(LV2_Handle handle, LV2_State_Retrieve_Function retrieve, LV2_State_Handle from,
                                uint32_t flags, const LV2_Feature *const *features) {
    plugin *p = handle;
    LV2_State_Status status = LV2_STATE_SUCCESS;
    (void)flags;
    *p->error = '\0';
    p->announce = true;
    for (int s = 0; s < (p->form.is_space ? 1 : SLOTS); s++) {
        const LV2_State_Status now = restore_slot(p, s, retrieve, from, features);
        status = status == LV2_STATE_SUCCESS ? now : status;
    }
    return status;
}

const LV2_State_Interface gc_lv2_state = {save, restore};
