/* A minimal LV2 host for tests. */
#include "host.h"

#include <dlfcn.h>
#include <math.h>

enum { FIRST_NUMBER = 2 }; /* behind the ports of messages */

static char *mapped_uris[256]; /* by URID; 0 is not used */

LV2_URID host_map_uri(LV2_URID_Map_Handle handle, const char *uri) {
    (void)handle;
    for (int i = 1; i < COUNT(mapped_uris); i++) {
        if (!mapped_uris[i])
            mapped_uris[i] = strdup(uri);
        if (strcmp(mapped_uris[i], uri) == 0)
            return (LV2_URID)i;
    }
    return 0;
}

static LV2_URID_Map host_map = {NULL, host_map_uri};

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data) {
    host *h = handle;
    memcpy(h->reply, data, size);
    h->reply_size = size;
    return LV2_WORKER_SUCCESS;
}

static void *work(void *argument) {
    host *h = argument;
    h->result = h->worker->work(h->handle, respond, h, h->request_size, h->request);
    return NULL;
}

static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t size, const void *data) {
    host *h = handle;
    memcpy(h->request, data, size);
    h->request_size = size;
    h->loads++;
    h->working = pthread_create(&h->thread, NULL, work, h) == 0;
    return LV2_WORKER_SUCCESS;
}

static int log_line(LV2_Log_Handle handle, LV2_URID type, const char *format, va_list arguments) {
    host *h = handle;
    (void)type;
    h->lines++;
    return vfprintf(stderr, format, arguments);
}

void host_begin(host *h, const char *uri) {
    static LV2_Worker_Schedule worker;
    static LV2_Log_Log log;
    static LV2_Feature features[3];
    static const LV2_Feature *list[4];
    memset(h, 0, sizeof *h);
    worker = (LV2_Worker_Schedule){h, schedule};
    log = (LV2_Log_Log){.handle = h, .vprintf = log_line};
    features[0] = (LV2_Feature){LV2_URID__map, &host_map};
    features[1] = (LV2_Feature){LV2_WORKER__schedule, &worker};
    features[2] = (LV2_Feature){LV2_LOG__log, &log};
    for (int i = 0; i < COUNT(features); i++)
        list[i] = &features[i];
    h->library = dlopen(PLUGIN_BUNDLE "/gpuconv.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(h->library, "%s", dlerror());
    const LV2_Descriptor *(*descriptor)(uint32_t) = NULL;
    *(void **)&descriptor = dlsym(h->library, "lv2_descriptor");
    CHECK(descriptor, "no entry");
    for (uint32_t i = 0; (h->plugin = descriptor(i)) && strcmp(h->plugin->URI, uri) != 0; i++) {
    }
    CHECK(h->plugin, "no %s", uri);
    h->handle = h->plugin->instantiate(h->plugin, RATE, PLUGIN_BUNDLE "/", list);
    CHECK(h->handle, "no instance");
    h->worker = h->plugin->extension_data(LV2_WORKER__interface);
    h->plugin->connect_port(h->handle, CONTROL, &h->control);
    h->plugin->connect_port(h->handle, NOTIFY, &h->notify);
    h->number[ENABLED] = h->number[STRETCH] = 1;
    const lv2_form form = gc_lv2_form(uri);
    for (uint32_t i = FIRST_NUMBER, channel; i < 2 * PORTS; i++) {
        const port number = gc_lv2_port_at(form, i, &channel);
        if (number < PORTS)
            h->plugin->connect_port(h->handle, i, &h->number[number]);
        else if (channel < form.inputs + 2)
            h->plugin->connect_port(h->handle, i,
                                    channel < form.inputs ? h->in[channel] : h->out[channel - form.inputs]);
    }
    h->number[DRY] = -90;
    h->number[WIDTH] = 100;
    h->number[LOW_CUT] = 20;
    h->number[HIGH_CUT] = 20000;
    h->number[FREEWHEEL] = 1; /* process waits for the tail, so that the test does not depend on time */
    lv2_atom_forge_init(&h->forge, &host_map);
    h->plugin->activate(h->handle);
}

void host_end(host *h) {
    if (h->plugin->deactivate)
        h->plugin->deactivate(h->handle);
    h->plugin->cleanup(h->handle);
    dlclose(h->library);
}

host *host_new(const char *uri) {
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    host_begin(h, uri);
    return h;
}

void host_delete(host *h) {
    host_end(h);
    free(h);
}

static void play(host *h, const char *property, const char *path) {
    LV2_Atom_Forge_Frame sequence, object;
    lv2_atom_forge_set_buffer(&h->forge, h->control.bytes, BUFFER);
    lv2_atom_forge_sequence_head(&h->forge, &sequence, 0);
    if (path) {
        lv2_atom_forge_frame_time(&h->forge, 0);
        lv2_atom_forge_object(&h->forge, &object, 0, host_map_uri(NULL, LV2_PATCH__Set));
        lv2_atom_forge_key(&h->forge, host_map_uri(NULL, LV2_PATCH__property));
        lv2_atom_forge_urid(&h->forge, host_map_uri(NULL, property));
        lv2_atom_forge_key(&h->forge, host_map_uri(NULL, LV2_PATCH__value));
        lv2_atom_forge_path(&h->forge, path, (uint32_t)strlen(path));
        lv2_atom_forge_pop(&h->forge, &object);
    }
    lv2_atom_forge_pop(&h->forge, &sequence);
    h->notify.sequence.atom.size = BUFFER - sizeof(LV2_Atom);
    for (int i = 0; i < BLOCK; i++, h->phase += 2 * 3.14159265358979 * 220 / RATE)
        h->in[0][i] = h->in[1][i] = 0.5f * (float)sin(h->phase);
    h->plugin->run(h->handle, BLOCK);
    LV2_ATOM_SEQUENCE_FOREACH(&h->notify.sequence, event) {
        const LV2_Atom *value = NULL, *about = NULL;
        lv2_atom_object_get((const LV2_Atom_Object *)&event->body, host_map_uri(NULL, LV2_PATCH__value), &value,
                            host_map_uri(NULL, LV2_PATCH__property), &about, 0);
        const bool is_path = value && value->type == host_map_uri(NULL, LV2_ATOM__Path);
        const bool is_second = about && ((const LV2_Atom_URID *)about)->body == host_map_uri(NULL, SECOND_URI);
        if (value)
            snprintf(is_path ? h->announced[is_second] : h->error, sizeof h->error, "%s",
                     (const char *)LV2_ATOM_BODY_CONST(value));
    }
}

void host_play(host *h, const char *path) {
    play(h, RESPONSE_URI, path);
}

void host_play_second(host *h, const char *path) {
    play(h, SECOND_URI, path);
}

void host_deliver_reply(host *h) {
    if (h->working)
        pthread_join(h->thread, NULL);
    h->working = false;
    if (h->reply_size)
        assert_int_equal(h->worker->work_response(h->handle, h->reply_size, h->reply), LV2_WORKER_SUCCESS);
    h->reply_size = 0;
}

const char *write_response(const char *name, int rate, float level) {
    guarded taps = guarded_new(1, 4);
    memset(taps.channel[0], 0, 4 * sizeof(float));
    taps.channel[0][0] = level;
    const char *path = files_path("%s", name);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, &taps);
    guarded_free(&taps);
    return path;
}

float host_peak(host *h, int blocks) {
    float most = 0;
    for (int b = 0; b < blocks; b++) {
        host_play(h, NULL);
        for (int i = 0; i < BLOCK; i++)
            most = fmaxf(most, fabsf(h->out[0][i]));
    }
    return most;
}

float host_roughness(host *h, int blocks) {
    float a = h->out[0][BLOCK - 2], b = h->out[0][BLOCK - 1], worst = 0;
    for (int k = 0; k < blocks; k++) {
        host_play(h, NULL);
        host_deliver_reply(h);
        for (int i = 0; i < BLOCK; i++) {
            worst = fmaxf(worst, fabsf(h->out[0][i] - 2 * b + a));
            a = b;
            b = h->out[0][i];
        }
    }
    return worst;
}

char host_stored_path[2][1024];

LV2_State_Status host_store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                            uint32_t flags) {
    (void)handle;
    (void)flags;
    const bool is_second = key == host_map_uri(NULL, SECOND_URI);
    const bool is_none = is_second && size == 1; /* an empty string: hosts take an empty path for that of a folder */
    CHECK((is_second || key == host_map_uri(NULL, RESPONSE_URI)) &&
              type == host_map_uri(NULL, is_none ? LV2_ATOM__String : LV2_ATOM__Path) &&
              size <= sizeof host_stored_path[0],
          "the state contains something else");
    memcpy(host_stored_path[is_second], value, size);
    return LV2_STATE_SUCCESS;
}

const void *host_retrieve(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags) {
    (void)handle;
    const char *path = host_stored_path[key == host_map_uri(NULL, SECOND_URI)];
    *size = strlen(path) + 1;
    *type = host_map_uri(NULL, *path ? LV2_ATOM__Path : LV2_ATOM__String);
    *flags = LV2_STATE_IS_POD;
    return path;
}

struct host_state host_state;

const void *host_retrieve_bytes(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags) {
    (void)handle;
    *size = host_state.size;
    *type = host_map_uri(NULL, host_state.type);
    *flags = LV2_STATE_IS_POD;
    return key == host_map_uri(NULL, RESPONSE_URI) ? host_state.bytes : NULL;
}

LV2_State_Status host_restore(const host *h, const char *path) {
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    host_state.bytes = path;
    host_state.size = strlen(path) + 1;
    host_state.type = LV2_ATOM__Path;
    return states->restore(h->handle, host_retrieve_bytes, NULL, 0, NULL);
}

void host_free_uris(void) {
    for (int i = 1; i < COUNT(mapped_uris); i++)
        free(mapped_uris[i]);
}
