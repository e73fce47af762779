/* Finding the module that knows sound devices. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

gpuconv_status gc_sound_find(const gc_sound_system **system, gpuconv_error *error) {
    char why[400];
    gc_sound_system_of *of;
    *system = NULL;
    *(void **)&of = gc_module_load("gpuconv-sound", GC_SOUND_SYSTEM, why, sizeof why);
    if (!of)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "this build plays nothing: %s", why);
    *system = of();
    return GPUCONV_OK;
}
