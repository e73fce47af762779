/* Finds the kinds of remote control: OSC is received by osc.h, MIDI by a module. */
#include "control.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "osc/osc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gc_control {
    gc_osc *osc;
    char where[100];
};

static void osc_close(gc_control *c) {
    if (c)
        gc_osc_close(c->osc);
    free(c);
}

static gpuconv_status osc_open(const char *where, gc_control **control, gpuconv_error *error) {
    *control = NULL;
    gc_control *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "remote control");
    gpuconv_status status = gc_osc_open(where, &c->osc, error);
    if (status) {
        osc_close(c);
        return status;
    }
    (void)snprintf(c->where, sizeof c->where, "OSC on UDP port %.60s%s", where,
                   strchr(where, ':') ? "" : " of this machine");
    *control = c;
    return GPUCONV_OK;
}

static const char *osc_where(const gc_control *c) {
    return c->where;
}

static bool osc_take(gc_control *c, gc_control_event *event) {
    gc_osc_message m;
    while (gc_osc_take(c->osc, &m))
        if (gc_control_read_osc(m.address, m.value[0], event))
            return true;
    return false;
}

const gc_control_system *gc_control_osc(void) {
    static const gc_control_system system = {osc_open, osc_where, osc_take, osc_close};
    return &system;
}

gpuconv_status gc_control_midi(const gc_control_system **system, gpuconv_error *error) {
    char why[400];
    gc_control_system_get *get;
    *system = NULL;
    *(void **)&get = gc_module_load("gpuconv-midi", GC_CONTROL_SYSTEM, why, sizeof why);
    if (!get)
        return gc_fail(
            error, GPUCONV_ERROR_UNSUPPORTED,
            "MIDI needs the module gpuconv-midi (Debian: the package gpuconv-sound, or libjack-jackd2-dev to build it): "
            "%s",
            why);
    *system = get();
    return GPUCONV_OK;
}
