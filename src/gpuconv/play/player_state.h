/* The state of a player, shared by its device callback, its reader and recorder threads, and the control functions.
 * Atomic fields may be accessed by any of them; each other group belongs to the thread that its comment names, or is
 * constant while threads run. */
#ifndef GPUCONV_PLAY_PLAYER_STATE_H
#define GPUCONV_PLAY_PLAYER_STATE_H

#include "frame_ring.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/dsp/resampler.h"
#include "libgpuconv/file/job.h"
#include "libgpuconv/ir/ambisonic.h"
#include "libgpuconv/ir/spatial.h"
#include "player.h"

#include <pthread.h>

/* Frames that the callback processes at a time; frames of the input that it keeps, a power of two. */
enum { GC_PLAYER_CHUNK = 256, GC_PLAYER_HISTORY = 1 << 14 };

/* The orientation of a head over time: from a text file, or from a head tracker by OSC. */
typedef struct gc_follow gc_follow;

/* Opens a source: the path of a text file with lines SECONDS YAW [PITCH [ROLL]] in rising time, # begins a comment; or
 * osc or osc: and a port as in osc/osc.h (default 9000), which receives messages whose address ends in ypr, with three
 * floats. Angles are degrees to the left, up, and to the right. Fails with FILE, FORMAT, ARGUMENT, MEMORY; UNSUPPORTED
 * in a build without liblo. */
gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error);
void gc_follow_free(gc_follow *follow);

/* Writes yaw, pitch and roll at a position in seconds: interpolated between the lines of a file, or the latest message.
 * For one thread. */
void gc_follow_at(gc_follow *follow, double seconds, double angle[3]);

struct gc_player {
    /* Constant while threads run. */
    gc_player_config config;
    const gc_sound_system *system;
    gc_sound_device *sound;
    gc_reader *reader;          /* NULL: live input */
    gc_writer *writer;          /* NULL: no recording */
    gc_resampler *resampler;    /* from the file's rate to the device's; NULL: the rates are equal */
    gpuconv_realtime *realtime; /* NULL: moving sources */
    gc_moving moving;           /* moving sources, or a head that turns as in a file */
    gpuconv_motion *motion;     /* that of `moving`; NULL: none */
    gc_follow *follow;          /* NULL: the head does not turn */
    gpuconv_sofa *sofa;         /* the responses of the turning head */
    gc_decoder *decoder;        /* of ambisonics, which that head hears; NULL: it hears directions */
    int inputs, outputs;
    bool widened;         /* a response of one channel is played to two outputs */
    double file_rate;     /* Hz */
    bool follow_rate;     /* the device's rate may change */
    int64_t duration;     /* frames at the device's rate; -1: unknown, or live input */
    int64_t drain_frames; /* the device's latency and a margin, in frames */
    int64_t limit;        /* frames that are played and recorded; INT64_MAX: to the end */

    /* Threads. */
    pthread_t reader_thread, recorder_thread;
    bool reader_running, recorder_running;
    gc_frame_ring prefetched, recorded;
    _Atomic bool recording;     /* the callback hands frames to the recorder, which ends after the last one */
    _Atomic bool quit;          /* the reader ends */
    volatile int reader_cancel; /* raised with `quit`: cancels a read from a pipe */
    _Atomic bool thread_failed; /* the first one that fails writes `err` and `error` */
    gpuconv_status err;         /* of a thread; read after all are joined */
    gpuconv_error error;

    /* Used by the control functions only. */
    double head[3];    /* yaw, pitch, roll */
    char applied[400]; /* changes of the selected response */

    /* Playback. */
    _Atomic double rate; /* of the device in Hz */
    _Atomic int response;
    _Atomic int64_t lead; /* frames by which the response's output is late: the dry signal is delayed by them */
    _Atomic int64_t tail; /* frames of the longest response so far: how long the output decays after the file's end */
    _Atomic bool ended;   /* the reader has prefetched the last frame */
    _Atomic bool finished, paused, bypassed;
    _Atomic bool starting;    /* the reader fills the ring for the first time */
    _Atomic bool flush;       /* the reader sets it to have the ring discarded; the callback clears it afterwards */
    _Atomic int64_t seek;     /* requested frame; -1: no request */
    _Atomic int64_t position; /* frames */
    _Atomic double gain, wet, dry; /* requested linear factors */

    /* Statistics, written by the callback. */
    _Atomic int64_t frames; /* processed */
    _Atomic int64_t underruns;
    _Atomic int64_t nonfinite;              /* samples of a live input */
    _Atomic uint64_t busy_ns, available_ns; /* time spent in the callback, and duration of the blocks */
    _Atomic uint64_t worst_load;            /* millionths of a block's duration */
    _Atomic uint32_t peak[GC_PLAYER_CHANNELS];
    _Atomic bool clipped[GC_PLAYER_CHANNELS];

    /* Owned by the callback. */
    double current_wet, current_dry; /* linear factors at the end of the last chunk */
    int64_t current_lead;            /* of the dry signal, at the end of the last chunk */
    int64_t tail_frames_left;        /* -1: the file has not ended */
    float *scratch;                  /* 2 inputs + outputs planes of a chunk, then one interleaved chunk */
    float *history;                  /* the last GC_PLAYER_HISTORY frames of each input */
    int64_t history_at;              /* place of the next frame */
};

#endif
