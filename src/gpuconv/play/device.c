/* Loads the module that drives sound devices. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

gpuconv_status gc_sound_load(const gc_sound_system **system, gpuconv_error *error) {
    char why[400];
    gc_sound_system_get *get;
    *system = NULL;
    *(void **)&get = gc_module_load("gpuconv-sound", GC_SOUND_SYSTEM, why, sizeof why);
    if (!get)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "this build cannot play sound: %s", why);
    *system = get();
    return GPUCONV_OK;
}

char *gc_sound_devices(gpuconv_error *error) {
    const gc_sound_system *system;
    return gc_sound_load(&system, error) ? NULL : system->list(error);
}
