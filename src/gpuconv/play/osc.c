/* Loads the module that receives OSC. */
#include "osc.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"

#include <stdlib.h>

struct gc_osc {
    const gc_osc_module *module;
    void *receiver;
};

gpuconv_status gc_osc_open(int port, gc_osc **osc, gpuconv_error *error) {
    char why[400];
    gc_osc_module_get *get;
    *osc = NULL;
    *(void **)&get = gc_module_load("gpuconv-osc", GC_OSC_MODULE, why, sizeof why);
    if (!get)
        return gc_fail(
            error, GPUCONV_ERROR_UNSUPPORTED,
            "OSC needs the module gpuconv-osc (Debian: the package gpuconv-sound, or liblo-dev to build it): %s", why);
    gc_osc *made = gc_calloc(1, sizeof *made);
    if (!made)
        return gc_fail_memory(error, "OSC");
    made->module = get();
    made->receiver = made->module->open(port, why, sizeof why);
    if (!made->receiver) {
        free(made);
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "UDP port %d: %s; choose another", port, why);
    }
    *osc = made;
    return GPUCONV_OK;
}

bool gc_osc_take(gc_osc *osc, gc_osc_message *message) {
    return osc->module->take(osc->receiver, message);
}

void gc_osc_close(gc_osc *osc) {
    if (osc)
        osc->module->close(osc->receiver);
    free(osc);
}
