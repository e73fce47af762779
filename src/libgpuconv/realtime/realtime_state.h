/*
 * The state of a real-time convolution: voices, each with a convolver, and the mailboxes through which they come.
 *
 * One voice plays the whole response. A layer changes some of its routes: its voice plays, for these routes alone, the
 * new response less the one in the whole response, so that the sum of both is the new response and no other route is
 * touched. An exchange of the whole response ends all layers.
 *
 * The control functions (realtime_exchange.c) put a new convolver into the mailbox of the whole response or of a layer,
 * which holds only the newest one. The callback moves it into an empty voice, crossfades the input from the active
 * voice to it, and lets the previous voice decay until its response has ended; then it retires that voice. Worker
 * threads compute the tails of all voices. The first worker frees retired voices: each worker counts itself in
 * `readers` while it uses a voice, and a convolver is freed only at zero readers.
 *
 *      voice     empty -> active -> decaying -> retired -> empty
 *
 * Whole responses are numbered. A layer carries the number of the response that it changes and is used with no other.
 */
#ifndef GC_REALTIME_REALTIME_STATE_H
#define GC_REALTIME_REALTIME_STATE_H

#include "stage_convolver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { GC_RT_MAX_THREADS = 64 };

/* Part 0 of what plays is the whole response, the other parts are layers. Voices of whole responses come first, then
 * those of layers: at most one active and one decaying for each. */
enum { GC_RT_LAYERS = 16, GC_RT_PARTS = 1 + GC_RT_LAYERS };
enum { GC_RT_WHOLE_VOICES = 4, GC_RT_VOICES = GC_RT_WHOLE_VOICES + 2 * GC_RT_LAYERS };

enum { GC_VOICE_EMPTY, GC_VOICE_ACTIVE, GC_VOICE_DECAYING, GC_VOICE_RETIRED };

typedef struct gc_voice {
    _Atomic(gc_rt_convolver *) convolver;
    _Atomic int state;
    _Atomic int readers; /* threads that use the convolver and are not the callback */
    /* Only the callback uses these: */
    int64_t decay_left;      /* frames until a decaying voice is silent */
    int64_t fade_out_length; /* frames of the fade of a voice that is stopped early; 0: it is not */
    int64_t fade_out_left;   /* frames of that fade that remain */
    int64_t fade_length;     /* frames in which its input is faded in (active) or out (decaying) */
    int64_t fade_done;
} gc_voice;

struct gpuconv_realtime {
    gpuconv_realtime_config config;
    int inputs, outputs;
    char plan[256];
    _Atomic bool freewheel;
    _Atomic int64_t late_blocks;
    _Atomic bool on_gpu;  /* the active voice's tail is on the GPU */
    _Atomic int64_t lead; /* of the active voice's response */
    gc_voice voice[GC_RT_VOICES];

    _Atomic(gc_rt_convolver *) pending[GC_RT_PARTS]; /* mailboxes */
    _Atomic int64_t newest_fade;                     /* frames of the exchange that was posted last */

    /* Used by the control functions, under `control`: */
    pthread_mutex_t control;
    gpuconv_ir *response[GC_RT_PARTS]; /* posted last: the whole response, and the present taps of the routes that a
                                          layer changes; NULL: the layer is free */
    int64_t number;                    /* of the whole response */

    /* Worker threads: */
    pthread_t thread[GC_RT_MAX_THREADS];
    int threads;
    _Atomic long poll_ns; /* between two polls of a worker */
    _Atomic bool quit;
    gc_gpu_target gpu;
    _Atomic bool gpu_failed;   /* new convolvers are made for the CPU */
    pthread_t fallback_thread; /* replaces a failed GPU tail by a CPU one */
    bool fallback_started;

    /* Only the callback uses these: */
    int active[GC_RT_PARTS];       /* index of the voice of each part; -1: none */
    int64_t active_number;         /* of the whole response */
    float *scratch;                /* (2 x inputs + outputs) x GC_RT_CHUNK */
    float *input[GC_MAX_CHANNELS]; /* the current chunk */
    float *faded[GC_MAX_CHANNELS]; /* the current chunk with a fade applied */
};

/* Makes a convolver of a whole response, on the GPU if one was asked for and has not failed, or of a layer, which is
 * computed on the CPU: its routes are few. Returns MEMORY, DEVICE. */
gpuconv_status gc_realtime_make_convolver(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer,
                                          gc_rt_convolver **convolver, gpuconv_error *error);

/* Does so for the response delayed by the configured latency. */
gpuconv_status gc_realtime_make_delayed(gpuconv_realtime *r, const gpuconv_ir *ir, bool layer,
                                        gc_rt_convolver **convolver, gpuconv_error *error);

/* Shortens the interval between two polls of the workers to half the shortest hop that they compute. */
void gc_realtime_poll_for(gpuconv_realtime *r, const gc_rt_convolver *convolver);

/* Frees what the control functions hold. */
void gc_realtime_free_control(gpuconv_realtime *r);

/* Takes the convolver out of a voice. Returns it when no worker uses it any more. */
gc_rt_convolver *gc_voice_take_convolver(gc_voice *voice);

/* Runs a worker thread until `quit` is set; `realtime` is the gpuconv_realtime. */
void *gc_realtime_run_worker(void *realtime);

#endif
