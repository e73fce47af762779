/* The LV2 plug-in's URIs, forms and ports, as in gpuconv.ttl and CMakeLists.txt; for the plug-in and its window. */
#ifndef GPUCONV_LV2_PORTS_H
#define GPUCONV_LV2_PORTS_H

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

#endif
