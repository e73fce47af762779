/* The plug-in in a host of our own: another response is asked for by a message while it plays, loaded by the worker on
 * a thread of its own, told back, and heard without a click; latency is reported; state is saved and restored; what
 * cannot be read changes nothing. */
#include "check.h"
#include "files.h"

#include <dlfcn.h>
#include <lv2/atom/atom.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <math.h>
#include <pthread.h>

enum { BLOCK = 64, ROOM = 16384, RATE = 48000 };
enum { CONTROL, NOTIFY, WET, DRY, GAIN, PREDELAY, FREEWHEEL, LATENCY, MISSED, LEFT_IN, RIGHT_IN, LEFT_OUT, RIGHT_OUT };

/* ---- A host ------------------------------------------------------------------------------------------------------ */

static char *known[256];

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri) {
    (void)handle;
    for (int i = 1; i < COUNT(known); i++) {
        if (!known[i])
            known[i] = strdup(uri);
        if (strcmp(known[i], uri) == 0)
            return (LV2_URID)i;
    }
    return 0;
}

static LV2_URID_Map map = {NULL, map_uri};

typedef struct host {
    void *library;
    const LV2_Descriptor *plugin;
    LV2_Handle handle;
    const LV2_Worker_Interface *worker;
    union {
        LV2_Atom_Sequence sequence;
        uint8_t bytes[ROOM];
    } control, notify;
    float number[9], in[2][BLOCK], out[2][BLOCK];
    LV2_Atom_Forge forge;
    uint8_t asked[ROOM], answered[ROOM];
    uint32_t asked_size, answered_size;
    pthread_t thread;
    bool working;
    LV2_Worker_Status result;
    double phase;
    char heard[1024]; /* the response that was told last */
} host;

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data) {
    host *h = handle;
    memcpy(h->answered, data, size);
    h->answered_size = size;
    return LV2_WORKER_SUCCESS;
}

static void *work(void *argument) {
    host *h = argument;
    h->result = h->worker->work(h->handle, respond, h, h->asked_size, h->asked);
    return NULL;
}

static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t size, const void *data) {
    host *h = handle;
    memcpy(h->asked, data, size);
    h->asked_size = size;
    h->working = pthread_create(&h->thread, NULL, work, h) == 0;
    return LV2_WORKER_SUCCESS;
}

static void begin(host *h, const char *uri) {
    static LV2_Worker_Schedule worker;
    static LV2_Feature features[2];
    static const LV2_Feature *list[3];
    memset(h, 0, sizeof *h);
    worker = (LV2_Worker_Schedule){h, schedule};
    features[0] = (LV2_Feature){LV2_URID__map, &map};
    features[1] = (LV2_Feature){LV2_WORKER__schedule, &worker};
    list[0] = &features[0];
    list[1] = &features[1];
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
    for (uint32_t i = WET; i <= MISSED; i++)
        h->plugin->connect_port(h->handle, i, &h->number[i]);
    for (uint32_t c = 0; c < 2; c++) {
        h->plugin->connect_port(h->handle, LEFT_IN + c, h->in[c]);
        h->plugin->connect_port(h->handle, LEFT_OUT + c, h->out[c]);
    }
    h->number[DRY] = -90;
    h->number[FREEWHEEL] = 1; /* the test does not wait for the clock */
    lv2_atom_forge_init(&h->forge, &map);
    h->plugin->activate(h->handle);
}

static void end(host *h) {
    if (h->plugin->deactivate)
        h->plugin->deactivate(h->handle);
    h->plugin->cleanup(h->handle);
    dlclose(h->library);
}

/* One block of a sine, with a wish for a response in its events, or none. */
static void play(host *h, const char *wish) {
    LV2_Atom_Forge_Frame sequence, object;
    lv2_atom_forge_set_buffer(&h->forge, h->control.bytes, ROOM);
    lv2_atom_forge_sequence_head(&h->forge, &sequence, 0);
    if (wish) {
        lv2_atom_forge_frame_time(&h->forge, 0);
        lv2_atom_forge_object(&h->forge, &object, 0, map_uri(NULL, LV2_PATCH__Set));
        lv2_atom_forge_key(&h->forge, map_uri(NULL, LV2_PATCH__property));
        lv2_atom_forge_urid(&h->forge, map_uri(NULL, "urn:gpuconv:response"));
        lv2_atom_forge_key(&h->forge, map_uri(NULL, LV2_PATCH__value));
        lv2_atom_forge_path(&h->forge, wish, (uint32_t)strlen(wish));
        lv2_atom_forge_pop(&h->forge, &object);
    }
    lv2_atom_forge_pop(&h->forge, &sequence);
    h->notify.sequence.atom.size = ROOM - sizeof(LV2_Atom);
    for (int i = 0; i < BLOCK; i++, h->phase += 2 * 3.14159265358979 * 220 / RATE)
        h->in[0][i] = h->in[1][i] = 0.5f * (float)sin(h->phase);
    h->plugin->run(h->handle, BLOCK);
    LV2_ATOM_SEQUENCE_FOREACH(&h->notify.sequence, event) {
        const LV2_Atom *value = NULL;
        lv2_atom_object_get((const LV2_Atom_Object *)&event->body, map_uri(NULL, LV2_PATCH__value), &value, 0);
        if (value)
            snprintf(h->heard, sizeof h->heard, "%s", (const char *)LV2_ATOM_BODY_CONST(value));
    }
}

/* The worker's answer comes between two blocks. */
static void answer(host *h) {
    if (h->working)
        pthread_join(h->thread, NULL);
    h->working = false;
    if (h->answered_size)
        assert_int_equal(h->worker->work_response(h->handle, h->answered_size, h->answered), LV2_WORKER_SUCCESS);
    h->answered_size = 0;
}

static const char *response(const char *name, int rate, float level) {
    guarded taps = guarded_new(1, 4);
    memset(taps.channel[0], 0, 4 * sizeof(float));
    taps.channel[0][0] = level;
    const char *path = files_path("%s", name);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, &taps);
    guarded_free(&taps);
    return path;
}

static float peak_of(host *h, int blocks) {
    float most = 0;
    for (int b = 0; b < blocks; b++) {
        play(h, NULL);
        for (int i = 0; i < BLOCK; i++)
            most = fmaxf(most, fabsf(h->out[0][i]));
    }
    return most;
}

static void a_response_asked_for_is_loaded_told_and_heard_without_a_click(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    begin(h, "urn:gpuconv:stereo");
    const char *loud = response("loud.wav", RATE, 1), *soft = response("soft.wav", RATE, 0.25f);
    play(h, loud);
    answer(h);
    assert_int_equal(h->result, LV2_WORKER_SUCCESS);
    for (int b = 0; b < 3000; b++) /* until the response of the bundle has rung out */
        play(h, NULL);
    assert_string_equal(h->heard, loud);
    float level = peak_of(h, 20);
    CHECK(fabsf(level - 0.5f) < 0.001f, "%g through a response of 1", (double)level);
    float a = h->out[0][BLOCK - 2], b = h->out[0][BLOCK - 1], worst = 0;
    for (int k = 0; k < 400; k++) {
        play(h, k == 10 ? soft : k == 200 ? loud : NULL);
        answer(h);
        for (int i = 0; i < BLOCK; i++) { /* of the sine itself 0.5 (2 pi 220 / 48000)^2 = 0.0004 */
            worst = fmaxf(worst, fabsf(h->out[0][i] - 2 * b + a));
            a = b;
            b = h->out[0][i];
        }
        if (k == 190) {
            float quiet = peak_of(h, 20);
            CHECK(fabsf(quiet - 0.125f) < 0.001f, "%g through a response of a quarter", (double)quiet);
            a = h->out[0][BLOCK - 2];
            b = h->out[0][BLOCK - 1];
        }
    }
    CHECK(worst < 0.002f, "a click: second difference %g", (double)worst);
    assert_string_equal(h->heard, loud);
    end(h);
    free(h);
}

static void what_cannot_be_read_changes_nothing(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    begin(h, "urn:gpuconv:mono");
    h->plugin->connect_port(h->handle, RIGHT_IN, h->out[0]); /* one input: what follows are its outputs */
    h->plugin->connect_port(h->handle, LEFT_OUT, h->out[1]);
    const char *loud = response("one.wav", RATE, 1);
    play(h, loud);
    answer(h);
    play(h, NULL);
    play(h, "/nowhere/at/all.wav");
    answer(h);
    assert_int_not_equal(h->result, LV2_WORKER_SUCCESS);
    for (int b = 0; b < 3000; b++)
        play(h, NULL);
    assert_string_equal(h->heard, loud);
    CHECK(fabsf(peak_of(h, 20) - 0.5f) < 0.001f, "another response sounds");
    assert_memory_equal(h->out[0], h->out[1], sizeof h->out[0]);
    end(h);
    free(h);
}

static void levels_predelay_and_latency_are_what_the_ports_say(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    begin(h, "urn:gpuconv:stereo");
    play(h, response("unit.wav", RATE, 1));
    answer(h);
    for (int b = 0; b < 3000; b++)
        play(h, NULL);
    assert_true(h->number[LATENCY] == 0);
    h->number[WET] = -20;
    play(h, NULL);
    CHECK(fabsf(peak_of(h, 20) - 0.05f) < 0.0005f, "wet does nothing");
    h->number[WET] = -90;
    h->number[DRY] = -6.0206f;
    play(h, NULL);
    CHECK(fabsf(peak_of(h, 20) - 0.25f) < 0.001f, "dry does nothing");
    h->number[GAIN] = -6.0206f;
    play(h, NULL);
    CHECK(fabsf(peak_of(h, 20) - 0.125f) < 0.001f, "gain does nothing");
    h->number[GAIN] = h->number[WET] = 0;
    h->number[DRY] = 0;
    h->number[PREDELAY] = 1000.0f / 440; /* half a turn: wet against dry */
    for (int b = 0; b < 40; b++)
        play(h, NULL);
    CHECK(peak_of(h, 20) < 0.01f, "predelay does nothing");
    /* An impulse at another rate has what the interpolation puts before time zero: latency. */
    play(h, response("other.wav", 44100, 1));
    answer(h);
    play(h, NULL);
    CHECK(h->number[LATENCY] > 10, "latency of %g frames", (double)h->number[LATENCY]);
    end(h);
    free(h);
}

static char kept[1024];

static LV2_State_Status store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                              uint32_t flags) {
    (void)handle;
    (void)flags;
    CHECK(key == map_uri(NULL, "urn:gpuconv:response") && type == map_uri(NULL, LV2_ATOM__Path) && size <= sizeof kept,
          "something else is kept");
    memcpy(kept, value, size);
    return LV2_STATE_SUCCESS;
}

static const void *retrieve(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags) {
    (void)handle;
    (void)key;
    *size = strlen(kept) + 1;
    *type = map_uri(NULL, LV2_ATOM__Path);
    *flags = LV2_STATE_IS_POD;
    return kept;
}

static void state_comes_back(void **state) {
    (void)state;
    host *h = malloc(sizeof *h);
    CHECK(h, "no memory");
    begin(h, "urn:gpuconv:stereo");
    const char *path = response("kept.wav", RATE, 0.5f);
    const LV2_State_Interface *states = h->plugin->extension_data(LV2_STATE__interface);
    play(h, path);
    answer(h);
    assert_int_equal(states->save(h->handle, store, NULL, 0, NULL), LV2_STATE_SUCCESS);
    assert_string_equal(kept, path);
    end(h);
    begin(h, "urn:gpuconv:stereo");
    states = h->plugin->extension_data(LV2_STATE__interface);
    assert_int_equal(states->restore(h->handle, retrieve, NULL, 0, NULL), LV2_STATE_SUCCESS);
    for (int b = 0; b < 3000; b++)
        play(h, NULL);
    assert_string_equal(h->heard, path);
    CHECK(fabsf(peak_of(h, 20) - 0.25f) < 0.001f, "the state's response does not sound");
    end(h);
    free(h);
    for (int i = 1; i < COUNT(known); i++)
        free(known[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_asked_for_is_loaded_told_and_heard_without_a_click),
        cmocka_unit_test(what_cannot_be_read_changes_nothing),
        cmocka_unit_test(levels_predelay_and_latency_are_what_the_ports_say),
        cmocka_unit_test(state_comes_back),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
