/* A sound device of the test, which calls the callback, or runs the whole stream when it is started. */
#ifndef TESTS_GPUCONV_FAKE_SOUND_H
#define TESTS_GPUCONV_FAKE_SOUND_H

#include "gpuconv/play/device.h"

extern struct fake_sound {
    gc_sound_config opened;
    gc_sound_choice chosen;
    gpuconv_status (*start)(gc_sound_device *sound, gpuconv_error *error); /* NULL: the test calls the callback */
    const char *recording;                                                 /* of the test */
    bool was_there;   /* it had its name when the device was closed */
    gc_sound_end end; /* how it was closed */
} fake_sound;

#endif
