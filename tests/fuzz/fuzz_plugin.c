/* Fuzzes the LV2 plug-in: the first byte selects the form of the plug-in and whether the other bytes are its state, a
 * sequence at the control port, or a message to its worker; the second byte a port that gets a value of its range, or
 * beyond it. Refused input leaves the plug-in unchanged, and the output stays finite. One instance of each form
 * processes all inputs, so that each starts from the state that earlier ones left. */
#include "fuzz.h"
#include "lv2/ports.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* URIDs 1 to 9 are fixed because the corpus and the dictionary use them: 1 Path, 2 Object, 3 Set, 4 property, 5 value,
 * 6 the response, 7 URID, 8 Get, 9 the second response. Others are assigned in the order of the requests. */
static char uris[64][96] = {"",
                            LV2_ATOM__Path,
                            LV2_ATOM__Object,
                            LV2_PATCH__Set,
                            LV2_PATCH__property,
                            LV2_PATCH__value,
                            "urn:gpuconv:response",
                            LV2_ATOM__URID,
                            LV2_PATCH__Get,
                            SECOND_URI};

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

static char folder[128];
static const uint8_t *state;
static size_t state_size;
static uint32_t state_type;

typedef struct form_host {
    const LV2_Descriptor *plugin;
    LV2_Handle handle;
    const LV2_Worker_Interface *worker;
    const LV2_State_Interface *states;
    float number[PORTS], in[2][BLOCK], out[2][BLOCK];
    uint8_t answer[ROOM];
    uint32_t answer_size;
} form_host;

static form_host hosts[2]; /* reverb and space */

static LV2_Worker_Status respond(LV2_Worker_Respond_Handle handle, uint32_t size, const void *data) {
    form_host *host = handle;
    if (size > sizeof host->answer)
        abort();
    memcpy(host->answer, data, size);
    host->answer_size = size;
    return LV2_WORKER_SUCCESS;
}

/* Runs the worker immediately. Refuses paths outside the fuzzer's folder, which could name a device: the path is the
 * text at the end of a message. */
static LV2_Worker_Status schedule(LV2_Worker_Schedule_Handle handle, uint32_t size, const void *data) {
    form_host *host = handle;
    const char *bytes = data, *path = bytes + (size ? size - 1 : 0);
    host->answer_size = 0;
    while (path > bytes && path[-1] != '\0')
        path--;
    const size_t room = (size_t)(bytes + size - path), length = strlen(folder);
    if (memchr(path, '/', room) && (room < length || memcmp(path, folder, length) != 0))
        return LV2_WORKER_ERR_NO_SPACE;
    (void)host->worker->work(host->handle, respond, host, size, data);
    return LV2_WORKER_SUCCESS;
}

static const void *retrieve(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags) {
    (void)handle;
    (void)key;
    *size = state_size;
    *type = state_type;
    *flags = LV2_STATE_IS_POD;
    return state;
}

static LV2_State_Status store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                              uint32_t flags) {
    (void)handle;
    (void)flags;
    const bool is_second = strcmp(uris[key], SECOND_URI) == 0;
    const bool is_none = is_second && !*(const char *)value && strcmp(uris[type], LV2_ATOM__String) == 0;
    if ((strcmp(uris[key], RESPONSE_URI) != 0 && !is_second) || (type != 1 && !is_none) || strlen(value) + 1 != size)
        abort();
    return LV2_STATE_SUCCESS;
}

/* Maps paths of the state into the fuzzer's folder. */
static char *absolute(LV2_State_Map_Path_Handle handle, const char *path) {
    (void)handle;
    size_t room = strlen(folder) + strlen(path) + 1;
    char *mapped = malloc(room);
    if (!mapped)
        abort();
    (void)snprintf(mapped, room, "%s%s", folder, path);
    for (char *at = mapped + strlen(folder); *at; at++)
        *at = *at == '/' ? '_' : *at;
    return mapped;
}

static char *abstracted(LV2_State_Map_Path_Handle handle, const char *path) {
    (void)handle;
    return strdup(path);
}

static void begin(form_host *host) {
    static LV2_Worker_Schedule worker[2];
    static LV2_Feature features[2][2];
    const int number = (int)(host - hosts);
    const LV2_Feature *list[] = {&features[number][0], &features[number][1], NULL};
    worker[number] = (LV2_Worker_Schedule){host, schedule};
    features[number][0] = (LV2_Feature){LV2_URID__map, &map};
    features[number][1] = (LV2_Feature){LV2_WORKER__schedule, &worker[number]};
    host->plugin = lv2_descriptor(number ? 2 : 0);
    host->number[STRETCH] = host->number[ENABLED] = host->number[FREEWHEEL] = 1;
    host->number[HIGH_CUT] = 20000;
    host->handle = host->plugin->instantiate(host->plugin, RATE, folder, list);
    if (!host->handle)
        abort();
    host->worker = host->plugin->extension_data(LV2_WORKER__interface);
    host->states = host->plugin->extension_data(LV2_STATE__interface);
    const lv2_form form = gc_lv2_form(host->plugin->URI);
    for (uint32_t i = 2, channel; i < 2 * PORTS; i++) {
        const port which = gc_lv2_port_at(form, i, &channel);
        if (which < PORTS)
            host->plugin->connect_port(host->handle, i, &host->number[which]);
        else if (channel < 4)
            host->plugin->connect_port(host->handle, i, channel < 2 ? host->in[channel] : host->out[channel - 2]);
    }
    host->in[0][0] = host->in[1][0] = 1;
    host->plugin->activate(host->handle);
}

/* Writes the files of the bundle: a response of four float taps, and a set. */
static void begin_all(void) {
    static const uint8_t wav[] = "RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\x03\0\x01\0\x80\xbb\0\0\0\xee\x02\0\x04\0\x20\0"
                                 "data\x10\0\0\0\0\0\0\x3f\0\0\0\0\0\0\0\0\0\0\0";
    static uint8_t set[1 << 17];
    FILE *file = fopen(FUZZ_SET, "rb");
    const size_t size = file ? fread(set, 1, sizeof set, file) : 0;
    if (!size || fclose(file) != 0)
        abort();
    (void)fuzz_file("default.sofa", set, size);
    (void)snprintf(folder, sizeof folder, "%s", fuzz_file("default.flac", wav, sizeof wav));
    strrchr(folder, '/')[1] = '\0';
    for (int i = 0; i < 2; i++)
        begin(&hosts[i]);
}

/* Runs one block with these bytes as the events of the control sequence and `room` bytes for the notify port. */
static void play(form_host *host, const uint8_t *bytes, size_t size, uint32_t room) {
    uint8_t *control = malloc(sizeof(LV2_Atom_Sequence) + size), *notify = malloc(sizeof(LV2_Atom) + room);
    if (!control || !notify)
        abort();
    LV2_Atom_Sequence *sequence = (LV2_Atom_Sequence *)(void *)control;
    *sequence = (LV2_Atom_Sequence){{(uint32_t)(sizeof(LV2_Atom_Sequence_Body) + size), 0}, {0, 0}};
    if (size)
        memcpy(sequence + 1, bytes, size);
    ((LV2_Atom *)(void *)notify)->size = room;
    host->plugin->connect_port(host->handle, CONTROL, control);
    host->plugin->connect_port(host->handle, NOTIFY, notify);
    host->plugin->run(host->handle, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        if (!isfinite(host->out[0][i]) || !isfinite(host->out[1][i]))
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
            const LV2_URID about = ((const LV2_Atom_URID *)(const void *)property)->body;
            if (value->type != (about == 6 || about == 9 ? 1 : map_uri(NULL, LV2_ATOM__String)))
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
    if (!*folder)
        begin_all();
    uint8_t kind = data[0], choice = data[1];
    form_host *host = &hosts[kind >> 4 & 1];
    uint8_t *exact =
        malloc(size - 2 ? size - 2 : 1); /* of exact size, so that the sanitizer detects a read past the end */
    if (!exact)
        abort();
    memcpy(exact, data + 2, size - 2);
    if (kind % 4 == 0) {
        state = exact;
        state_size = size - 2;
        state_type = choice & 1 ? 1 : choice;
        (void)host->states->restore(host->handle, retrieve, NULL, 0, list);
        if (host->states->save(host->handle, store, NULL, 0, choice & 2 ? list : NULL) != LV2_STATE_SUCCESS)
            abort();
        play(host, NULL, 0, 512);
    } else if (kind % 4 == 1) {
        if (host->worker->work_response(host->handle, (uint32_t)(size - 2), exact) == LV2_WORKER_SUCCESS)
            play(host, NULL, 0, 4 * (uint32_t)choice);
        (void)schedule(host, (uint32_t)(size - 2), exact);
    } else {
        const int which = WET + choice % (PORTS - WET);
        if (which != FREEWHEEL && which != TRACKED) /* the tail is waited for, and no UDP port is opened */
            host->number[which] = kind & 4 ? NAN : kind & 8 ? INFINITY : (float)(kind & 32 ? choice * 9 : choice - 100);
        host->answer_size = 0;
        play(host, exact, size - 2, 8 * (uint32_t)choice);
        if (host->answer_size)
            (void)host->worker->work_response(host->handle, host->answer_size, host->answer);
        play(host, NULL, 0, 512);
    }
    free(exact);
    return 0;
}
