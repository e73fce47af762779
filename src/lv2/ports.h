/* The LV2 plug-in's URIs, forms and ports, as in gpuconv.ttl and CMakeLists.txt, and the message that both sides send:
 * for the plug-in and its window. */
#ifndef GPUCONV_LV2_PORTS_H
#define GPUCONV_LV2_PORTS_H

#include <lv2/atom/atom.h>
#include <lv2/atom/forge.h>
#include <lv2/patch/patch.h>
#include <lv2/urid/urid.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PLUGIN_URI "urn:gpuconv:"
#define RESPONSE_URI PLUGIN_URI "response"
#define SECOND_URI PLUGIN_URI "second"
#define ERROR_URI PLUGIN_URI "error"
#define WINDOW_URI PLUGIN_URI "window"

/* Ports but for the audio ports, which are before ENABLED. */
typedef enum port {
    CONTROL,
    NOTIFY,
    WET,
    DRY,
    GAIN,
    PREDELAY,
    FREEWHEEL,
    LATENCY,
    LATE_BLOCKS,
    ENABLED,
    START,
    LENGTH,
    FADE,
    STRETCH,
    TRIM,
    PEAK_IN, /* left, right */
    PEAK_OUT = PEAK_IN + 2,
    REVERSE = PEAK_OUT + 2,
    ATTACK,
    AUTOGAIN,
    WIDTH,
    LOW_CUT,
    HIGH_CUT,
    CROSSFADE,
    AZIMUTH, /* from here on of the spatial forms only */
    ELEVATION,
    SPREAD,
    TRACKED,
    OSC_PORT,
    YAW,
    PITCH,
    ROLL,
    PORTS
} port;

/* A form of the plug-in: a reverb has the ports before AZIMUTH, a spatial one those of gc_lv2_port_at. */
typedef struct lv2_form {
    bool is_space;
    uint32_t inputs; /* 1 or 2 */
} lv2_form;

static inline lv2_form gc_lv2_form(const char *uri) {
    return (lv2_form){strstr(uri, "space") != NULL, strstr(uri, "mono") ? 1 : 2};
}

/* Returns the port that has an index in gpuconv.ttl; PORTS: an audio port, *channel of the inputs and then the outputs,
 * or none, with a *channel beyond them. */
static inline port gc_lv2_port_at(lv2_form f, uint32_t index, uint32_t *channel) {
    static const port before[] = {CONTROL, NOTIFY, GAIN, FREEWHEEL, LATENCY},
                      behind[] = {ENABLED, PEAK_IN, PEAK_IN + 1, PEAK_OUT, PEAK_OUT + 1, AZIMUTH, ELEVATION,
                                  SPREAD,  TRACKED, OSC_PORT,    YAW,      PITCH,        ROLL};
    const uint32_t first = f.is_space ? sizeof before / sizeof *before : ENABLED, audio = f.inputs + 2;
    *channel = index - first;
    if (index < first)
        return f.is_space ? before[index] : (port)index;
    index -= first + audio;
    if (*channel < audio || index >= (f.is_space ? sizeof behind / sizeof *behind : AZIMUTH - ENABLED))
        return PORTS;
    return f.is_space ? behind[index] : (port)(ENABLED + index);
}

/* Returns the index of a port that the form has. */
static inline uint32_t gc_lv2_port_index(lv2_form f, port which) {
    uint32_t index = 0, channel;
    while (gc_lv2_port_at(f, index, &channel) != which && index < 2 * PORTS)
        index++;
    return index;
}

/* The responses of a reverb. */
enum { SLOTS = 2 };

typedef struct lv2_uris {
    LV2_URID path, string, set, get, property, value, response[SLOTS], error, urid;
} lv2_uris;

/* Maps the URIs that messages and state need, and begins the forge. */
static inline lv2_uris gc_lv2_map_uris(LV2_URID_Map *m, LV2_Atom_Forge *forge) {
    lv2_atom_forge_init(forge, m);
    return (lv2_uris){.path = m->map(m->handle, LV2_ATOM__Path),
                      .set = m->map(m->handle, LV2_PATCH__Set),
                      .get = m->map(m->handle, LV2_PATCH__Get),
                      .property = m->map(m->handle, LV2_PATCH__property),
                      .value = m->map(m->handle, LV2_PATCH__value),
                      .response = {m->map(m->handle, RESPONSE_URI), m->map(m->handle, SECOND_URI)},
                      .error = m->map(m->handle, ERROR_URI),
                      .string = m->map(m->handle, LV2_ATOM__String),
                      .urid = m->map(m->handle, LV2_ATOM__URID)};
}

/* Writes a patch:Set of a property to a text of a type. @return whether it fitted into the buffer */
static inline bool gc_lv2_write_set(LV2_Atom_Forge *f, const lv2_uris *uri, LV2_URID property, LV2_URID type,
                                    const char *text) {
    LV2_Atom_Forge_Frame object;
    const bool good = lv2_atom_forge_object(f, &object, 0, uri->set) && lv2_atom_forge_key(f, uri->property) &&
                      lv2_atom_forge_urid(f, property) && lv2_atom_forge_key(f, uri->value) &&
                      lv2_atom_forge_typed_string(f, type, text, (uint32_t)strlen(text));
    if (good)
        lv2_atom_forge_pop(f, &object);
    return good;
}

#endif
