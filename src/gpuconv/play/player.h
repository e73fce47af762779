/*
 * Playing through responses:
 *
 *      file -> reader (a thread) -> ring -> device's callback -> device
 *                                              |  ^
 *      microphone or line ---------------------+--+-> ring -> recorder (a thread) -> file
 *
 * The callback meets the others in rings and counters alone. Everything that is told or chosen while it plays may be
 * asked and set from any one other thread.
 */
#ifndef GPUCONV_PLAY_PLAYER_H
#define GPUCONV_PLAY_PLAYER_H

#include "device.h"
#include "gpuconv.h"

enum { GC_PLAYER_CHANNELS = 64 };

typedef struct gc_player gc_player;

typedef struct gc_player_config {
    const char *input; /* a file; NULL: the device's input */
    const char *const *responses;
    int count;
    const char *output, *source; /* devices: see gc_sound_config */
    const char *record;          /* a file that gets what is heard; NULL */
    double rate;                 /* of the device; 0: the file's, or 48000. The file is resampled where it differs */
    int block, channels;         /* of the device; channels of a live input */
    int threads;
    gpuconv_backend backend; /* CUDA: tails on a GPU */
    int device;
    int64_t latency; /* frames that may be added, for less work in each block */
    bool loop;
    double seek;           /* seconds */
    double gain, wet, dry; /* decibels; dry -INFINITY: none */
    double crossfade;      /* seconds, between responses */
} gc_player_config;

/* What can be seen of it. */
typedef struct gc_player_view {
    double position, duration; /* seconds; duration -1: none */
    double rate;
    int outputs, response; /* which one is chosen */
    float peak[GC_PLAYER_CHANNELS];
    bool clipped[GC_PLAYER_CHANNELS]; /* ever */
    double mean, worst;               /* of a block's time, shares of what there was */
    int64_t missed, gaps, starved;    /* parts of the tail; blocks that the device calls late; the file came too late */
    bool paused, bypassed, finished, alive;
    double gain, wet, dry;
    const char *plan;
    bool gpu;        /* the tail is on one */
    int64_t latency; /* frames added to the device's own */
} gc_player_view;

/* Opens files and device, prepares the first response, and is silent. Errors as of files, responses, devices. */
gpuconv_status gc_player_new(const gc_player_config *config, gc_player **player, gpuconv_error *error);
gpuconv_status gc_player_start(gc_player *player, gpuconv_error *error);
void gc_player_look(gc_player *player, gc_player_view *view);

void gc_player_pause(gc_player *player, bool pause);
void gc_player_bypass(gc_player *player, bool bypass);
void gc_player_level(gc_player *player, double gain, double wet, double dry);
void gc_player_seek(gc_player *player, double seconds);

/* Another response of the list, prepared here and faded over. As gc_player_new, and gpuconv_realtime_swap. */
gpuconv_status gc_player_choose(gc_player *player, int response, gpuconv_error *error);

/* Ends, and keeps what was recorded: FILE when that failed. The player must still be freed. */
gpuconv_status gc_player_stop(gc_player *player, gpuconv_error *error);
void gc_player_free(gc_player *player);

#endif
