/* Loads the modules that drive sound devices. */
#include "device.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

#include <stdio.h>

/* @return NULL: `why` has the reason */
static const gc_sound_system *load(const char *module, gc_sound_choice choice, char *why, size_t room) {
    gc_sound_system_get *get;
    *(void **)&get = gc_module_load(module, GC_SOUND_SYSTEM, why, room);
    return get ? get(choice) : NULL;
}

gpuconv_status gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error) {
    char why[400];
    *system = NULL;
    if (choice < GC_SOUND_JACK) {
        const gc_sound_system *found = load("gpuconv-pipewire", choice, why, sizeof why);
        bool runs = found && found->is_running();
        if (runs)
            *system = found;
        if (runs)
            return GPUCONV_OK;
        if (choice == GC_SOUND_PIPEWIRE)
            return found ? gc_fail(error, GPUCONV_ERROR_DEVICE, "PipeWire does not run, or refuses the connection")
                         : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                                   "PipeWire needs the module gpuconv-pipewire (Debian: the package gpuconv-sound, or "
                                   "libpipewire-0.3-dev to build it): %s",
                                   why);
    }
    *system = load("gpuconv-sound", choice, why, sizeof why);
    if (*system && (*system)->is_running && !(*system)->is_running())
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "JACK does not run, or PortAudio was built without it");
    return *system ? GPUCONV_OK
                   : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                             "sound devices need the module gpuconv-sound (Debian: the package gpuconv-sound, or "
                             "portaudio19-dev to build it): %s",
                             why);
}

bool gc_sound_works(gc_sound_watch *w, bool active, int64_t frames, double passed) {
    const double limit = ((double)frames < w->rate ? 6 : 3) + 4 * w->block / w->rate;
    w->silent = frames == w->frames ? w->silent + passed : 0;
    w->frames = frames;
    return active && w->silent < limit;
}

char *gc_sound_devices(gc_sound_choice choice, gpuconv_error *error) {
    const gc_sound_system *system;
    return gc_sound_load(choice, &system, error) ? NULL : system->list(error);
}
