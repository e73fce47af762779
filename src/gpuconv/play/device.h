/* Interface of the sound devices: a callback receives and returns blocks of planar samples. The
 * implementations, PipeWire and PortAudio, are separate modules, loaded when they are needed, so that other subcommands
 * load no sound libraries. */
#ifndef GPUCONV_PLAY_DEVICE_H
#define GPUCONV_PLAY_DEVICE_H

#include "gpuconv.h"

typedef struct gc_sound_device gc_sound_device;

/* Processes one block of `frames` frames per channel; `in` is NULL if the device was opened without inputs. The
 * device's real-time thread calls it, so it must not block, allocate or lock. */
typedef void gc_sound_callback(void *context, const float *const *in, float *const *out, int64_t frames);

typedef struct gc_sound_config {
    const char *output, *input; /* a device's number or part of its name; pulse:NAME: a sink or source of PulseAudio;
                                   NULL: the default device */
    const char *sink;           /* PipeWire only: name of a sink that other programs play into, instead of an input
                                   device; "": gpuconv-sink; NULL: none */
    bool follow_rate;           /* of a sink: blocks have the rate of the server, which `rate` of the device returns */
    int inputs, outputs;        /* channels; inputs 0: open no input */
    double rate;                /* Hz */
    int block;                  /* requested frames per callback; 0: the device chooses */
    gc_sound_callback *callback;
    void *context;
} gc_sound_config;

/* How a device is closed. */
typedef enum gc_sound_end {
    GC_SOUND_ABORT,
    GC_SOUND_DRAIN,  /* plays the buffered output first */
    GC_SOUND_ABANDON /* it has failed: never waits for it; what cannot be freed without it remains */
} gc_sound_end;

/* The functions that the module provides. */
typedef struct gc_sound_system {
    const char *name;         /* as the user sees it */
    bool (*is_running)(void); /* its server answers; NULL: it needs none */

    /* Returns one line per device with its number, name, channels and latency; to be freed. NULL: *error has the
     * reason. */
    char *(*list)(gpuconv_error *error);

    /* Opens a device without starting it. Fails with DEVICE (the message is the sound system's) or MEMORY. */
    gpuconv_status (*open)(const gc_sound_config *config, gc_sound_device **sound, gpuconv_error *error);
    gpuconv_status (*start)(gc_sound_device *sound, gpuconv_error *error);
    double (*latency)(const gc_sound_device *sound); /* output latency in seconds, as the device reports it */
    int64_t (*xruns)(
        const gc_sound_device *sound);            /* callbacks flagged with an output underflow or an input overflow */
    double (*rate)(const gc_sound_device *sound); /* of the server in Hz; 0: not known yet. NULL: that of opening */
    bool (*is_active)(const gc_sound_device *sound); /* the device still calls the callback */

    /* Closes the device; no callback runs after it returns. */
    void (*close)(gc_sound_device *sound, gc_sound_end end);
} gc_sound_system;

/* The sound systems to choose from, and their names. */
typedef enum gc_sound_choice { GC_SOUND_ANY, GC_SOUND_PIPEWIRE, GC_SOUND_JACK, GC_SOUND_PORTAUDIO } gc_sound_choice;
#define GC_WORDS_SOUND "auto|pipewire|jack|portaudio"

/* The function that the module exports under this name. */
#define GC_SOUND_SYSTEM "gpuconv_sound_system"
typedef const gc_sound_system *gc_sound_system_get(gc_sound_choice choice);

/* Watches whether a device calls its callback: some sound systems go on without a server and do not say so. */
typedef struct gc_sound_watch {
    double rate;    /* Hz */
    int block;      /* frames; 0: the device chooses */
    int64_t frames; /* that were processed at the last look */
    double silent;  /* seconds since the last one in which the callback ran */
} gc_sound_watch;

/* Looks at a device.
 * @param active  what the device says
 * @param frames  that the callback has processed since the beginning
 * @param passed  seconds since the last look; time in which the program is stopped does not count
 * @return false if the device has failed: it says so, or the callback was silent for 3 seconds and four blocks, because
 *         PulseAudio goes on after 2 seconds when it was late; for 6 within the first second of sound, because sound
 *         servers wake their devices */
bool gc_sound_works(gc_sound_watch *watch, bool active, int64_t frames, double passed);

/* Loads the module of a sound system. ANY: PipeWire if this build has it and its server runs, else PortAudio; JACK:
 * PortAudio with JACK's devices only.
 * @return UNSUPPORTED if this build has none, DEVICE if the server of the one that was asked for does not run */
gpuconv_status gc_sound_load(gc_sound_choice choice, const gc_sound_system **system, gpuconv_error *error);

/* Returns the list of devices, to be freed. NULL: *error has the reason. */
char *gc_sound_devices(gc_sound_choice choice, gpuconv_error *error);

#endif
