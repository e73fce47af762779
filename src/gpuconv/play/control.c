/* Loads the modules of remote control. */
#include "control.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

gpuconv_status gc_control_load(const char *module, const gc_control_system **system, gpuconv_error *error) {
    char why[400];
    gc_control_system_get *get;
    *system = NULL;
    *(void **)&get = gc_module_load(module, GC_CONTROL_SYSTEM, why, sizeof why);
    if (!get)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "this build has no such remote control: %s", why);
    *system = get();
    return GPUCONV_OK;
}
