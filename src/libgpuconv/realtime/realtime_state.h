/*
 * The state of a real-time convolution: one active response, and previous responses that decay.
 *
 * gpuconv_realtime_swap puts a new convolver into a mailbox, which holds only the newest one. The callback moves it
 * into an empty voice, crossfades the input from the active voice to it, and lets the previous voice decay until its
 * response has ended; then it retires that voice. Worker threads compute the tails of all voices. The first worker
 * frees retired voices: each worker counts itself in `readers` while it uses a voice, and a convolver is freed only at
 * zero readers.
 *
 *      voice     empty -> active -> decaying -> retired -> empty
 */
#ifndef GC_REALTIME_REALTIME_STATE_H
#define GC_REALTIME_REALTIME_STATE_H

#include "stage_convolver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { GC_RT_VOICES = 4, GC_RT_CHUNK = 1024, GC_RT_MAX_THREADS = 64 };

enum { GC_VOICE_EMPTY, GC_VOICE_ACTIVE, GC_VOICE_DECAYING, GC_VOICE_RETIRED };

typedef struct gc_voice {
    _Atomic(gc_rt_convolver *) convolver;
    _Atomic int state;
    _Atomic int readers; /* threads that use the convolver and are not the callback */
    /* Only the callback uses these: */
    int64_t decay_left;      /* frames until a decaying voice is silent */
    int64_t fade_out_length; /* frames of the fade of a voice that is stopped early; 0: it is not */
    int64_t fade_out_left;   /* frames of that fade that remain */
    bool input_fading;       /* its input is faded in or out */
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

    /* The mailbox: */
    _Atomic(gc_rt_convolver *) pending;
    _Atomic int64_t pending_fade; /* frames */

    /* Worker threads: */
    pthread_t thread[GC_RT_MAX_THREADS];
    int threads;
    struct timespec poll_interval;
    _Atomic bool quit;
    gc_gpu_target gpu;
    _Atomic bool gpu_failed;   /* new convolvers are made for the CPU */
    pthread_t fallback_thread; /* replaces a failed GPU tail by a CPU one */
    bool fallback_started;

    /* Only the callback uses these: */
    int active;                     /* index of the active voice */
    int64_t fade_length, fade_done; /* frames of the current crossfade */
    float *scratch;                 /* (2 x inputs + outputs) x GC_RT_CHUNK */
    float *input[GC_MAX_CHANNELS];  /* the current chunk */
    float *faded[GC_MAX_CHANNELS];  /* the current chunk with a fade applied */
};

/* Makes a convolver for an exchange: on the GPU if one was asked for and has not failed. Returns MEMORY, DEVICE. */
gpuconv_status gc_realtime_make_convolver(gpuconv_realtime *r, const gpuconv_ir *ir, gc_rt_convolver **convolver,
                                          gpuconv_error *error);

/* Runs a worker thread until `quit` is set; `realtime` is the gpuconv_realtime. */
void *gc_realtime_run_worker(void *realtime);

#endif
