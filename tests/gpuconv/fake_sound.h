/* A sound device that plays when the test calls its callback. */
#ifndef TESTS_GPUCONV_FAKE_SOUND_H
#define TESTS_GPUCONV_FAKE_SOUND_H

#include "gpuconv/play/device.h"

extern struct fake_sound {
    gc_sound_config opened;
    const char *recording; /* of the test */
    bool was_there;        /* it had its name when the device was closed */
    gc_sound_end end;      /* how it was closed */
} fake_sound;

#endif
