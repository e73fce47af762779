/* Fuzzes the LV2 plug-in: the first byte selects whether the other bytes are its state, a sequence at the control port,
 * or a message to its worker. Refused input leaves the plug-in unchanged, and the output stays finite. One plug-in
 * instance processes all inputs, so that each starts from the state that earlier ones left. */
#include "fuzz.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, ROOM = 8192, RATE = 48000 };
enum { CONTROL, NOTIFY, WET, PREDELAY = 5, FREEWHEEL, LATENCY, MISSED, LEFT_IN, RIGHT_IN, LEFT_OUT, RIGHT_OUT };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* URIDs 1 to 8 are fixed because the corpus and the dictionary use them: 1 Path, 2 Object, 3 Set, 4 property, 5 value,
 * 6 the response, 7 URID, 8 Get. Others are assigned in the order of the requests. */
static char uris[64][96] = {"",
                            LV2_ATOM__Path,
                            LV2_ATOM__Object,
                            LV2_PATCH__Set,
                            LV2_PATCH__property,
                            LV2_PATCH__value,
                            "urn:gpuconv:response",
                            LV2_ATOM__URID,
                            LV2_PATCH__Get};

static LV2_URID map_uri(LV2_URID_Map_Handle handle, const char *uri) {
    (void)handle;
    for (LV2_URID i = 1; i < sizeof uris / sizeof *uris; i++) {
        if (!*uris[i])
            (void)snprintf(uris[i], sizeof uris[i], "%s", uri);
        if (strcmp(uris[i], uri) == 0)
            return i;
    }
    abort();
}

static LV2_URID_Map map = {NULL, map_uri};

static struct {
    const LV2_Descriptor *plugin;
    LV2_Handle handle;
    const LV2_Worker_Interface *worker;
    const LV2_State_Interface *states;
    float number[MISSED + 1], in[2][BLOCK], out[2][BLOCK];
    char folder[128];
    uint8_t answer[ROOM];
    uint32_t answer_size;
    const uint8_t *state;
    size_t state_size;
    uint32_t state_type;
} host;

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data) {
    (void)handle;
    if (size > sizeof host.answer)
        abort();
    memcpy(host.answer, data, size);
    host.answer_size = size;
    return LV2_WORKER_SUCCESS;
}

/* Runs the worker immediately. Refuses paths outside the fuzzer's folder, which could name a device. */
static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t size, const void *data) {
    (void)handle;
    host.answer_size = 0;
    const char *path = (const char *)data + 8; /* not terminated in every message */
    const size_t length = strlen(host.folder);
    if (size > 9 && memchr(path, '/', size - 8) && (size - 8 < length || memcmp(path, host.folder, length) != 0))
        return LV2_WORKER_ERR_NO_SPACE;
    (void)host.worker->work(host.handle, respond, NULL, size, data);
    return LV2_WORKER_SUCCESS;
}

static const void *retrieve(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags) {
    (void)handle;
    (void)key;
    *size = host.state_size;
    *type = host.state_type;
    *flags = LV2_STATE_IS_POD;
    return host.state;
}

static LV2_State_Status store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                              uint32_t flags) {
    (void)handle;
    (void)flags;
    if (strcmp(uris[key], "urn:gpuconv:response") != 0 || type != 1 || strlen(value) + 1 != size)
        abort();
    return LV2_STATE_SUCCESS;
}

/* Maps paths of the state into the fuzzer's folder. */
static char *absolute(LV2_State_Map_Path_Handle handle, const char *path) {
    (void)handle;
    size_t room = strlen(host.folder) + strlen(path) + 1;
    char *mapped = malloc(room);
    if (!mapped)
        abort();
    (void)snprintf(mapped, room, "%s%s", host.folder, path);
    for (char *at = mapped + strlen(host.folder); *at; at++)
        *at = *at == '/' ? '_' : *at;
    return mapped;
}

static char *abstracted(LV2_State_Map_Path_Handle handle, const char *path) {
    (void)handle;
    return strdup(path);
}

static void begin(void) {
    static LV2_Worker_Schedule worker = {NULL, schedule};
    static LV2_Feature features[] = {{LV2_URID__map, &map}, {LV2_WORKER__schedule, &worker}};
    static const LV2_Feature *list[] = {&features[0], &features[1], NULL};
    /* The default response of the bundle: four float taps. */
    static const uint8_t wav[] = "RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\x03\0\x01\0\x80\xbb\0\0\0\xee\x02\0\x04\0\x20\0"
                                 "data\x10\0\0\0\0\0\0\x3f\0\0\0\0\0\0\0\0\0\0\0";
    (void)snprintf(host.folder, sizeof host.folder, "%s", fuzz_file("default.flac", wav, sizeof wav));
    strrchr(host.folder, '/')[1] = '\0';
    host.plugin = lv2_descriptor(0);
    host.handle = host.plugin->instantiate(host.plugin, RATE, host.folder, list);
    if (!host.handle)
        abort();
    host.worker = host.plugin->extension_data(LV2_WORKER__interface);
    host.states = host.plugin->extension_data(LV2_STATE__interface);
    for (uint32_t i = WET; i <= MISSED; i++)
        host.plugin->connect_port(host.handle, i, &host.number[i]);
    for (uint32_t c = 0; c < 2; c++) {
        host.plugin->connect_port(host.handle, LEFT_IN + c, host.in[c]);
        host.plugin->connect_port(host.handle, LEFT_OUT + c, host.out[c]);
        host.in[c][0] = 1;
    }
    host.number[FREEWHEEL] = 1;
    host.plugin->activate(host.handle);
}

/* Runs one block with these bytes as the events of the control sequence and `room` bytes for the notify port. */
static void play(const uint8_t *bytes, size_t size, uint32_t room) {
    uint8_t *control = malloc(sizeof(LV2_Atom_Sequence) + size), *notify = malloc(sizeof(LV2_Atom) + room);
    if (!control || !notify)
        abort();
    LV2_Atom_Sequence *sequence = (LV2_Atom_Sequence *)(void *)control;
    *sequence = (LV2_Atom_Sequence){{(uint32_t)(sizeof(LV2_Atom_Sequence_Body) + size), 0}, {0, 0}};
    if (size)
        memcpy(sequence + 1, bytes, size);
    ((LV2_Atom *)(void *)notify)->size = room;
    host.plugin->connect_port(host.handle, CONTROL, control);
    host.plugin->connect_port(host.handle, NOTIFY, notify);
    host.plugin->run(host.handle, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        if (!isfinite(host.out[0][i]) || !isfinite(host.out[1][i]))
            abort();
    const LV2_Atom_Sequence *told = (const LV2_Atom_Sequence *)(const void *)notify;
    if (told->atom.size > room)
        abort();
    if (room >= sizeof *told)
        LV2_ATOM_SEQUENCE_FOREACH(told, event) {
            const LV2_Atom *property = NULL, *value = NULL;
            lv2_atom_object_get((const LV2_Atom_Object *)&event->body, 4, &property, 5, &value, 0);
            if (!property || !value)
                abort();
            const bool response = ((const LV2_Atom_URID *)(const void *)property)->body == 6;
            if (value->type != (response ? 1 : map_uri(NULL, LV2_ATOM__String)))
                abort();
        }
    free(control);
    free(notify);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LV2_State_Map_Path paths = {NULL, abstracted, absolute};
    LV2_Feature feature = {LV2_STATE__mapPath, &paths};
    const LV2_Feature *list[] = {&feature, NULL};
    if (size < 2)
        return 0;
    if (!host.handle)
        begin();
    uint8_t kind = data[0], choice = data[1];
    uint8_t *exact =
        malloc(size - 2 ? size - 2 : 1); /* of exact size, so that the sanitizer detects a read past the end */
    if (!exact)
        abort();
    memcpy(exact, data + 2, size - 2);
    if (kind % 4 == 0) {
        host.state = exact;
        host.state_size = size - 2;
        host.state_type = choice & 1 ? 1 : choice;
        (void)host.states->restore(host.handle, retrieve, NULL, 0, list);
        if (host.states->save(host.handle, store, NULL, 0, choice & 2 ? list : NULL) != LV2_STATE_SUCCESS)
            abort();
        play(NULL, 0, 512);
    } else if (kind % 4 == 1) {
        if (host.worker->work_response(host.handle, (uint32_t)(size - 2), exact) == LV2_WORKER_SUCCESS)
            play(NULL, 0, 4 * (uint32_t)choice);
        (void)schedule(NULL, (uint32_t)(size - 2), exact);
    } else {
        host.number[WET + choice % 4] = kind & 4 ? NAN : kind & 8 ? INFINITY : (float)choice - 100;
        host.answer_size = 0;
        play(exact, size - 2, 8 * (uint32_t)choice);
        if (host.answer_size)
            (void)host.worker->work_response(host.handle, host.answer_size, host.answer);
        play(NULL, 0, 512);
    }
    free(exact);
    return 0;
}
