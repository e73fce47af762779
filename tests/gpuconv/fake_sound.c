/* The sound device of tests, in place of gc_sound_load by the linker. */
#include "fake_sound.h"

#include <unistd.h>

struct fake_sound fake_sound;

static gpuconv_status fake_open(const gc_sound_config *config, gc_sound_device **sound, gpuconv_error *error) {
    (void)error;
    fake_sound.opened = *config;
    *sound = (gc_sound_device *)(void *)&fake_sound;
    return GPUCONV_OK;
}

static gpuconv_status fake_start(gc_sound_device *sound, gpuconv_error *error) {
    return fake_sound.start ? fake_sound.start(sound, error) : GPUCONV_OK;
}

static double fake_latency(const gc_sound_device *sound) {
    (void)sound;
    return 0;
}

static int64_t fake_xruns(const gc_sound_device *sound) {
    (void)sound;
    return 0;
}

static bool fake_is_active(const gc_sound_device *sound) {
    (void)sound;
    return true;
}

static void fake_close(gc_sound_device *sound, gc_sound_end end) {
    (void)sound;
    fake_sound.end = end;
    fake_sound.was_there = fake_sound.recording && access(fake_sound.recording, R_OK) == 0;
}

gpuconv_status __wrap_gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error);

gpuconv_status __wrap_gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error) {
    static const gc_sound_system fake = {"a test",     NULL,       NULL, fake_open,      fake_start,
                                         fake_latency, fake_xruns, NULL, fake_is_active, fake_close};
    (void)error;
    fake_sound.chosen = choice;
    *system = &fake;
    return GPUCONV_OK;
}
