/* Tests that run and work_response neither allocate nor lock while the worker loads responses and another thread saves
 * the state. The plug-in is compiled into this test, and the linker wraps the allocator and the locks. */
#include "check.h"
#include "count_calls.h"
#include "files.h"
#include "lv2/ports.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/forge.h>
#include <lv2/core/lv2.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { BLOCK = 64, BUFFER = 16384, RATE = 48000 };
static const char *const uris[] = {
    "", LV2_ATOM__Path, LV2_PATCH__Set, LV2_PATCH__property, LV2_PATCH__value, "urn:gpuconv:response"};
static char other_uris[64][128];

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri) {
    (void)handle;
    for (int i = 1; i < COUNT(uris); i++)
        if (strcmp(uris[i], uri) == 0)
            return (LV2_URID)i;
    for (int i = 0; i < COUNT(other_uris); i++) {
        if (!*other_uris[i])
            (void)snprintf(other_uris[i], sizeof other_uris[i], "%s", uri);
        if (strcmp(other_uris[i], uri) == 0)
            return (LV2_URID)(COUNT(uris) + i);
    }
    return 0;
}

static LV2_URID_Map map = {NULL, map_uri};

/* One request is in flight at a time. */
static struct {
    uint8_t request[BUFFER], reply[BUFFER];
    uint32_t request_size, reply_size;
    _Atomic int phase; /* 0 no request, 1 requested, 2 replied */
    _Atomic bool quit;
    LV2_Handle handle;
    const LV2_Worker_Interface *worker;
    const LV2_State_Interface *states;
    int loaded;
} host;

static float in[2][BLOCK], out[2][BLOCK], number[PORTS];

static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t size, const void *data) {
    (void)handle;
    if (atomic_load(&host.phase) != 0)
        return LV2_WORKER_ERR_NO_SPACE;
    memcpy(host.request, data, size);
    host.request_size = size;
    atomic_store(&host.phase, 1);
    return LV2_WORKER_SUCCESS;
}

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data) {
    (void)handle;
    memcpy(host.reply, data, size);
    host.reply_size = size;
    return LV2_WORKER_SUCCESS;
}

static void pause_for(long nanoseconds) {
    struct timespec moment = {0, nanoseconds};
    nanosleep(&moment, NULL);
}

/* Thread: loads what the plug-in requests. */
static void *work(void *argument) {
    while (!atomic_load(&host.quit)) {
        if (atomic_load(&host.phase) == 1) {
            host.reply_size = 0;
            (void)host.worker->work(host.handle, respond, argument, host.request_size, host.request);
            host.loaded++;
            atomic_store(&host.phase, 2);
        }
        pause_for(20000);
    }
    return NULL;
}

static LV2_State_Status store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                              uint32_t flags) {
    (void)handle, (void)key, (void)type, (void)flags;
    return strlen(value) + 1 == size ? LV2_STATE_SUCCESS : LV2_STATE_ERR_UNKNOWN;
}

/* Thread: saves the state again and again, and counts failures. */
static void *save(void *argument) {
    int *failures = argument;
    while (!atomic_load(&host.quit)) {
        *failures += host.states->save(host.handle, store, NULL, 0, NULL) != LV2_STATE_SUCCESS;
        pause_for(10000);
    }
    return NULL;
}

/* Writes the host's events. @param path a response to be set; NULL: no event */
static void write_events(LV2_Atom_Forge *forge, uint8_t *control, const char *property, const char *path) {
    LV2_Atom_Forge_Frame sequence, object;
    lv2_atom_forge_set_buffer(forge, control, BUFFER);
    lv2_atom_forge_sequence_head(forge, &sequence, 0);
    if (path) {
        lv2_atom_forge_frame_time(forge, 0);
        lv2_atom_forge_object(forge, &object, 0, map_uri(NULL, LV2_PATCH__Set));
        lv2_atom_forge_key(forge, map_uri(NULL, LV2_PATCH__property));
        lv2_atom_forge_urid(forge, map_uri(NULL, property));
        lv2_atom_forge_key(forge, map_uri(NULL, LV2_PATCH__value));
        lv2_atom_forge_path(forge, path, (uint32_t)strlen(path));
        lv2_atom_forge_pop(forge, &object);
    }
    lv2_atom_forge_pop(forge, &sequence);
}

/* Makes an instance of a form and connects its ports. */
static const LV2_Descriptor *begin(const lv2_form *form, uint8_t *control, uint8_t *notify) {
    static LV2_Worker_Schedule worker = {NULL, schedule};
    static LV2_Feature features[] = {{LV2_URID__map, &map}, {LV2_WORKER__schedule, &worker}};
    static const LV2_Feature *const list[] = {&features[0], &features[1], NULL};
    const LV2_Descriptor *plugin = lv2_descriptor(form->is_space ? 2 : 0);
    memset(&host, 0, sizeof host);
    memset(number, 0, sizeof number);
    number[STRETCH] = number[ENABLED] = 1;
    number[HIGH_CUT] = 20000;
    host.handle = plugin->instantiate(plugin, RATE, PLUGIN_BUNDLE "/", list);
    CHECK(host.handle, "no instance");
    host.worker = plugin->extension_data(LV2_WORKER__interface);
    host.states = plugin->extension_data(LV2_STATE__interface);
    plugin->connect_port(host.handle, CONTROL, control);
    plugin->connect_port(host.handle, NOTIFY, notify);
    for (uint32_t i = 2, channel; i < 2 * PORTS; i++) {
        const port which = gc_lv2_port_at(*form, i, &channel);
        if (which < PORTS)
            plugin->connect_port(host.handle, i, &number[which]);
        else if (channel < 4)
            plugin->connect_port(host.handle, i, channel < 2 ? in[channel] : out[channel - 2]);
    }
    plugin->activate(host.handle);
    return plugin;
}

/* Moves the controls of a block; the worker edits the response in between. */
static void move_controls(int block) {
    number[PREDELAY] = (float)(block % 100);
    number[ENABLED] = (float)(block / 50 % 2);
    number[FADE] = (float)(block / 10 % 5) * 1e-3F;
    number[CROSSFADE] = (float)(block / 70 % 3) * 50;
    number[AZIMUTH] = (float)(block * 7 % 360 - 180);
    number[SPREAD] = (float)(block / 20 % 180);
}

static void check_thread(lv2_form form, const char *const *path) {
    static uint8_t control[BUFFER] __attribute__((aligned(8))), notify[BUFFER] __attribute__((aligned(8)));
    const LV2_Descriptor *plugin = begin(&form, control, notify);
    LV2_Atom_Forge forge;
    lv2_atom_forge_init(&forge, &map);
    pthread_t working, saving;
    int failures = 0, replies = 0;
    CHECK(pthread_create(&working, NULL, work, NULL) == 0 && pthread_create(&saving, NULL, save, &failures) == 0,
          "no thread");
    for (int block = 0; replies < 30 && block < 50000; block++) {
        write_events(&forge, control, form.is_space || replies % 4 < 2 ? RESPONSE_URI : SECOND_URI,
                     atomic_load(&host.phase) == 0 ? path[replies % 2] : NULL);
        ((LV2_Atom *)(void *)notify)->size = BUFFER - sizeof(LV2_Atom);
        move_controls(block);
        in_callback = true;
        if (atomic_load(&host.phase) == 2) {
            if (host.reply_size)
                (void)host.worker->work_response(host.handle, host.reply_size, host.reply);
            replies += host.reply_size > 0;
            atomic_store(&host.phase, 0);
        }
        plugin->run(host.handle, BLOCK);
        in_callback = false;
        pause_for(10000);
    }
    atomic_store(&host.quit, true);
    pthread_join(working, NULL);
    pthread_join(saving, NULL);
    plugin->cleanup(host.handle);
    CHECK(replies == 30 && host.loaded >= 30, "%d responses were loaded, %d replies", host.loaded, replies);
    CHECK(failures == 0, "%d states were not saved", failures);
    CHECK(atomic_load(&calls) == 0, "the audio thread called the allocator or a lock %d times", atomic_load(&calls));
}

static void the_audio_thread_neither_locks_nor_allocates_while_other_threads_load_and_save(void **state) {
    (void)state;
    static const char *const sets[] = {TESTS_SOURCE "/tests/sofa/head.sofa", TESTS_SOURCE "/tests/sofa/order2.sofa"};
    char path[2][512];
    for (int i = 0; i < 2; i++) {
        guarded taps = guarded_new(1, 1000);
        memset(taps.channel[0], 0, 1000 * sizeof(float));
        taps.channel[0][0] = 1;
        (void)snprintf(path[i], sizeof path[i], "%s", files_path("%d.wav", i));
        files_write(path[i], SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &taps);
        guarded_free(&taps);
    }
    check_thread((lv2_form){false, 2}, (const char *const[]){path[0], path[1]});
    check_thread((lv2_form){true, 2}, sets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_audio_thread_neither_locks_nor_allocates_while_other_threads_load_and_save),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
