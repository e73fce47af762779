/* Sound devices: a callback that is handed blocks of planar samples. What knows PortAudio is a module of its own, so
 * that a command that plays nothing loads no sound libraries. */
#ifndef GPUCONV_PLAY_DEVICE_H
#define GPUCONV_PLAY_DEVICE_H

#include "gpuconv.h"

typedef struct gc_sound gc_sound;

/* Called by the device's own thread: `frames` frames of every channel, in NULL without an input. It may do nothing that
 * waits. */
typedef void gc_sound_callback(void *context, const float *const *in, float *const *out, int64_t frames);

typedef struct gc_sound_config {
    const char *output, *input; /* part of a device's name, or its number; NULL: the default */
    int inputs, outputs;        /* channels; inputs 0: none */
    double rate;                /* frames a second */
    int block;                  /* frames that are wished for; 0: the device's choice */
    gc_sound_callback *callback;
    void *context;
} gc_sound_config;

/* What the module that knows the library gives. */
typedef struct gc_sound_system {
    /* One line a device: its number, name, channels and latency, to be freed. NULL: *error says why. */
    char *(*list)(gpuconv_error *error);

    /* Opens; silent until started. DEVICE with what the system says, MEMORY. */
    gpuconv_status (*open)(const gc_sound_config *config, gc_sound **sound, gpuconv_error *error);
    gpuconv_status (*start)(gc_sound *sound, gpuconv_error *error);
    double (*latency)(const gc_sound *sound); /* seconds of the output, as the device says */
    int64_t (*gaps)(const gc_sound *sound);   /* blocks that the device says were late */
    bool (*alive)(const gc_sound *sound);     /* still calling back */

    /* After it no callback comes any more. `drain`: what was handed over is heard first. */
    void (*close)(gc_sound *sound, bool drain);
} gc_sound_system;

#define GC_SOUND_SYSTEM "gpuconv_sound_system"
typedef const gc_sound_system *gc_sound_system_of(void);

/* UNSUPPORTED where this build has none. */
gpuconv_status gc_sound_find(const gc_sound_system **system, gpuconv_error *error);

#endif
