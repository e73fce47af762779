/* Interface of the sound devices: a callback receives and returns blocks of planar samples. The PortAudio
 * implementation is a separate module, loaded when it is needed, so that other subcommands load no sound libraries. */
#ifndef GPUCONV_PLAY_DEVICE_H
#define GPUCONV_PLAY_DEVICE_H

#include "gpuconv.h"

typedef struct gc_sound gc_sound;

/* Processes one block of `frames` frames per channel; `in` is NULL if the device was opened without inputs. The
 * device's real-time thread calls it, so it must not block, allocate or lock. */
typedef void gc_sound_callback(void *context, const float *const *in, float *const *out, int64_t frames);

typedef struct gc_sound_config {
    const char *output, *input; /* a device's number or part of its name; NULL: the default device */
    int inputs, outputs;        /* channels; inputs 0: open no input */
    double rate;                /* Hz */
    int block;                  /* requested frames per callback; 0: the device chooses */
    gc_sound_callback *callback;
    void *context;
} gc_sound_config;

/* The functions that the module provides. */
typedef struct gc_sound_system {
    /* Returns one line per device with its number, name, channels and latency; to be freed. NULL: *error has the
     * reason. */
    char *(*list)(gpuconv_error *error);

    /* Opens a device without starting it. Fails with DEVICE (the message is the sound system's) or MEMORY. */
    gpuconv_status (*open)(const gc_sound_config *config, gc_sound **sound, gpuconv_error *error);
    gpuconv_status (*start)(gc_sound *sound, gpuconv_error *error);
    double (*latency)(const gc_sound *sound); /* output latency in seconds, as the device reports it */
    int64_t (*xruns)(const gc_sound *sound);  /* callbacks flagged with an output underflow or an input overflow */
    bool (*is_active)(const gc_sound *sound); /* the device still calls the callback */

    /* Closes the device; no callback runs after it returns. `drain`: plays the buffered output first. */
    void (*close)(gc_sound *sound, bool drain);
} gc_sound_system;

/* The function that the module exports under this name. */
#define GC_SOUND_SYSTEM "gpuconv_sound_system"
typedef const gc_sound_system *gc_sound_system_get(void);

/* Loads the module. @return UNSUPPORTED if this build has none. */
gpuconv_status gc_sound_load(const gc_sound_system **system, gpuconv_error *error);

#endif
