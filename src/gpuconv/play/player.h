/*
 * Player: plays a file or a live input through impulse responses.
 *
 *      file -> reader thread -> ring -> device callback (convolves) -> device
 *                                          ^         |
 *      microphone or line -----------------+         +-> ring -> recorder thread -> file
 *
 * The callback communicates with the threads through rings and atomic variables only, so it never waits. While the
 * player runs, one other thread may call the functions below.
 */
#ifndef GPUCONV_PLAY_PLAYER_H
#define GPUCONV_PLAY_PLAYER_H

#include "device.h"
#include "gpuconv.h"
#include "libgpuconv/ir/settings.h"

enum { GC_PLAYER_CHANNELS = 64 };

typedef struct gc_player gc_player;

typedef struct gc_player_config {
    const char *input; /* a file; NULL: the device's input */
    const char *const *responses;
    int response_count;
    gc_sound_choice sound;
    const char *output_device, *input_device, *sink; /* as in gc_sound_config */
    const char *record;                              /* file that the output is recorded to; NULL: none */
    double rate;  /* of the device in Hz; 0: the file's, or 48000; a sink then follows the server's if it plays one
                     response after another, without an end. A file of another rate is resampled */
    int block;    /* frames per callback; 0: the device chooses */
    int channels; /* of a live input; 0: 1, of a sink 2 */
    int threads;
    gpuconv_backend backend;    /* CUDA: computes the tail on a GPU */
    int device;                 /* CUDA device */
    int latency;                /* frames of latency that may be added to reduce the work per block */
    int loop;                   /* not 0: starts again at the end of the file */
    double seek;                /* seconds */
    double seconds;             /* that are played, and recorded; 0: to the end */
    gc_settings settings;       /* levels, layout, directions and moving sources */
    double crossfade;           /* seconds, between responses */
    const char *follow;         /* orientation of the head for a SOFA file (gc_follow_open); NULL: it does not turn */
    const volatile int *cancel; /* cancels waiting for a pipe; NULL: none */
} gc_player_config;

/* A snapshot of the player. */
typedef struct gc_player_view {
    double position, duration; /* seconds; duration -1: unknown, or live input */
    double rate;
    int outputs;
    int response;                     /* index of the selected one */
    const char *applied;              /* changes of that response, such as resampling; "": none */
    float peak[GC_PLAYER_CHANNELS];   /* since the last snapshot */
    bool clipped[GC_PLAYER_CHANNELS]; /* since the beginning */
    double mean_load, worst_load;     /* of the callback: time taken, relative to the duration of a block */
    int64_t late_blocks;              /* blocks of the tail, or of moving sources, that were not ready in time */
    int64_t xruns;                    /* underflows and overflows that the device reported */
    int64_t underruns;                /* chunks for which the file was not read in time */
    int64_t frames;                   /* that the device has taken since the beginning */
    bool paused, bypassed, finished;
    bool device_active; /* false: the device stopped by itself */
    double gain, wet, dry;
    const char *plan;
    const char *system; /* name of the sound system */
    bool gpu;           /* a GPU computes the tail */
    int64_t latency;    /* frames added to the device's own */
} gc_player_view;

/* Opens the files and the device and prepares the first response; plays nothing yet. Fails with what gc_sound_load,
 * gc_reader_open, gpuconv_ir_prepare, gpuconv_realtime_new or gc_sound_system.open return. */
gpuconv_status gc_player_new(const gc_player_config *config, gc_player **player, gpuconv_error *error);

/* Starts the threads and the device. @return DEVICE, MEMORY (a thread), CANCELLED */
gpuconv_status gc_player_start(gc_player *player, gpuconv_error *error);

/* Fills *view and resets the peaks. */
void gc_player_get_view(gc_player *player, gc_player_view *view);

void gc_player_pause(gc_player *player, bool pause);

/* Plays the dry signal only. */
void gc_player_bypass(gc_player *player, bool bypass);

/* Sets levels in dB; the next chunk ramps to them. */
void gc_player_set_levels(gc_player *player, double gain, double wet, double dry);

/* Requests a position in the file; ignored for a live input. */
void gc_player_seek(gc_player *player, double seconds);

/* Prepares another response of the list on the calling thread, then crossfades to it. Fails with ARGUMENT (no such
 * index) or with what gpuconv_ir_prepare or gpuconv_realtime_swap return. */
gpuconv_status gc_player_select_response(gc_player *player, int response, gpuconv_error *error);

/* Turns the head to where the followed source has it, if it has moved by TURN degrees or more, and prepares the
 * response again if the device has another rate: call it every few milliseconds. Responses are crossfaded. Fails with
 * what gpuconv_ir_prepare or gpuconv_realtime_swap return. */
gpuconv_status gc_player_follow(gc_player *player, gpuconv_error *error);

/* Commits the recording, then stops the device and the threads. Where a disk was full, the recording is committed up to
 * there. The player must still be freed.
 * @param failed    the device has failed: it is not waited for
 * @param recorded  whether there is a recording and it was committed
 * @return the first error of a thread, else that of the commit */
gpuconv_status gc_player_stop(gc_player *player, bool failed, bool *recorded, gpuconv_error *error);

/* Returns how many samples of the input were NaN or infinite, and were silence. After gc_player_stop. */
int64_t gc_player_nonfinite(const gc_player *player);
void gc_player_free(gc_player *player);

#endif
