/* Meaning of the messages of remote control. */
#include "control.h"

#include <math.h>
#include <string.h>

static double controller_level(int value) {
    return value > 0 ? 40 * log10(value / 127.0) : -HUGE_VAL;
}

bool gc_control_read_midi(const uint8_t *bytes, size_t size, gc_control_event *event) {
    if (size < 2 || bytes[1] > 127)
        return false;
    if ((bytes[0] & 0xf0) == 0xc0) {
        *event = (gc_control_event){GC_CONTROL_RESPONSE, bytes[1] + 1};
        return true;
    }
    if ((bytes[0] & 0xf0) != 0xb0 || size < 3 || bytes[2] > 127)
        return false;
    bool on = bytes[2] >= 64;
    switch (bytes[1]) {
    case 91:
        *event = (gc_control_event){GC_CONTROL_WET, controller_level(bytes[2])};
        return true;
    case 92:
        *event = (gc_control_event){GC_CONTROL_DRY, controller_level(bytes[2])};
        return true;
    case 7:
        *event = (gc_control_event){GC_CONTROL_GAIN, controller_level(bytes[2])};
        return true;
    case 80:
        *event = (gc_control_event){GC_CONTROL_BYPASS, on};
        return true;
    case 81:
    case 82:
        *event = (gc_control_event){GC_CONTROL_STEP, bytes[1] == 81 ? 1 : -1};
        return on;
    default:
        return false;
    }
}

bool gc_control_read_osc(const char *address, double value, gc_control_event *event) {
    static const struct {
        const char *name;
        gc_control_kind kind;
        double least, most;
    } known[] = {{"wet", GC_CONTROL_WET, -HUGE_VAL, 24},   {"dry", GC_CONTROL_DRY, -HUGE_VAL, 24},
                 {"gain", GC_CONTROL_GAIN, -HUGE_VAL, 24}, {"bypass", GC_CONTROL_BYPASS, 0, 1},
                 {"pause", GC_CONTROL_PAUSE, 0, 1},        {"response", GC_CONTROL_RESPONSE, 1, 1e6},
                 {"seek", GC_CONTROL_SEEK, 0, 1e9}};
    static const char prefix[] = "/gpuconv/";
    if (strncmp(address, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *name = address + sizeof prefix - 1;
    if (strcmp(name, "next") == 0 || strcmp(name, "previous") == 0) {
        *event = (gc_control_event){GC_CONTROL_STEP, *name == 'n' ? 1 : -1};
        return !(value == 0); /* a button that is released sends 0 */
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0 && value >= known[i].least && value <= known[i].most) {
            *event = (gc_control_event){known[i].kind, value};
            return true;
        }
    return false;
}
