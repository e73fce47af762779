/* The LV2 plug-in's instance, and the interfaces of its parts: signal path (plugin.c), sources in space and head
 * trackers (space.c), and loading, messages and saved state (worker.c).
 *
 * Threads: work, save and restore may run at the same time. `loading` is held while a response is loaded, so that the
 * response that sounds, the saved path and the announced path are those of the last load. `path_lock` is held only
 * while `path` is copied, so that save never waits for a file. The audio thread takes neither lock: it receives a path
 * with the worker's response message. Loads of a file are numbered; a message about a replaced response is dropped.
 *
 * A response of a saved state that cannot be loaded is missing: the state is saved with it again, and the worker looks
 * for it every two seconds.
 *
 * A reverb has two responses, each with its convolver, and crosses between them. A spatial form has one SOFA set in
 * place of the first response (space.c), and a head tracker. */
#ifndef GPUCONV_LV2_PLUGIN_H
#define GPUCONV_LV2_PLUGIN_H

#include "gpuconv.h"
#include "ports.h"

#include <lv2/core/lv2.h>
#include <lv2/log/logger.h>
#include <lv2/state/state.h>
#include <lv2/worker/worker.h>
#include <pthread.h>
#include <stdatomic.h>

enum { CHUNK = 256, OUTPUTS = 2, PATH_MOST = 4096, ERROR_MOST = 512 };

/* How the response is edited, as the ports give it. Never NaN, so that two of them can be compared. */
typedef struct edits {
    float start, length, fade; /* seconds; length 0: to the end */
    float stretch;             /* new / old length */
    float trim;                /* dB relative to the peak; 0: nothing is cut off */
    float attack;              /* milliseconds of the fade-in */
    int reverse, autogain;     /* no bool: a host passes them through, which may change any bit */
    int osc_port;              /* of the spatial forms: where a head tracker is listened to; 0: nowhere */
} edits;

/* A delayed output of the delay line. A change of the delay is crossfaded. */
typedef struct delay_tap {
    int64_t delay;          /* frames; -1: the first block takes its delay without a crossfade */
    int64_t previous_delay; /* from which the crossfade starts */
    int64_t fade_left;      /* frames */
} delay_tap;

/* A ring of samples for each input, with taps for the predelay of each response, and the dry signal. The response with
 * the larger lead determines the latency, by which the others are delayed. */
typedef struct delay_line {
    float *samples;      /* inputs x capacity */
    int64_t capacity;    /* frames */
    int64_t position;    /* place of the next frame */
    int64_t fade_frames; /* of a crossfade */
    delay_tap predelay[SLOTS], dry;
} delay_line;

/* The signs that a file was changed. */
typedef struct file_state {
    uint64_t inode; /* 0: there is no file */
    int64_t bytes, changed;
} file_state;

/* A response of the plug-in. */
typedef struct slot {
    _Atomic(gpuconv_realtime *) realtime; /* NULL: no response, or a spatial form */
    _Atomic double lead;                  /* frames of the response before its time zero */
    _Atomic int64_t frames;               /* of the longest one so far */
    _Atomic bool present;                 /* false: none was loaded, or it was unloaded */
    char path[PATH_MOST];                 /* of the response that was loaded last; "": none */
    char missing[PATH_MOST];              /* of a saved state, could not be loaded; "": none */
    file_state tried;                     /* of `missing` when that failed; protected by `loading` */
    _Atomic bool is_missing;              /* `missing` is not empty */
    edits loaded;                         /* edits of the loaded response; protected by `loading` */
    _Atomic uint32_t load_count;          /* number of the last load of another file */
    /* The audio thread's own */
    char announced_path[PATH_MOST]; /* sent to the host */
    bool emptied;                   /* it was unloaded: the empty path is sent too */
    float part;                     /* current gain, which moves to that of the crossfade; -1: none yet */
    int64_t quiet;                  /* frames of silence that were fed since the gain is 0 */
} slot;

/* A SOFA set with its sources (space.c). */
typedef struct space space;

typedef struct space_exchange {
    _Atomic(space *) next, retired; /* loaded, and no longer used; NULL: none */
    _Atomic int tracker;            /* number of the head tracker; -1: none */
    /* The audio thread's own */
    space *current, *previous;
    int64_t fade_left; /* frames of the crossfade from `previous` */
    double at[3];      /* azimuth, elevation, width: move to those of the ports; NaN: none yet */
} space_exchange;

/* A filter of second order of the wet signal, which a change of its frequency does not disturb. It is crossfaded with
 * its input while it is turned on or off. */
typedef struct cut {
    float g;                 /* tan(pi f / rate); 0: none yet */
    float part;              /* of the filter in the output, 0 to 1 */
    float state[OUTPUTS][2]; /* of its two integrators */
} cut;

typedef struct plugin {
    lv2_form form;
    double rate;
    /* Ports */
    const LV2_Atom_Sequence *control;
    LV2_Atom_Sequence *notify;
    float *parameter[PORTS]; /* control ports, inputs and outputs; NULL: not connected */
    const float *in[2];      /* equal for one input */
    float *out[OUTPUTS];
    /* Features of the host; NULL: not supported */
    LV2_URID_Map *map;
    LV2_Worker_Schedule *worker;
    LV2_Log_Logger log;
    _Atomic int64_t log_from; /* seconds: errors before then are only counted */
    _Atomic int unlogged;     /* errors that were counted */
    lv2_uris uri;
    /* The response */
    slot slot[SLOTS];
    space_exchange space;
    _Atomic bool looks;        /* the worker looks for missing files */
    _Atomic bool started;      /* a block was processed since activate: an exchange is crossfaded */
    pthread_mutex_t loading;   /* serialises loads; never taken by the audio thread */
    pthread_mutex_t path_lock; /* protects the paths of the slots; never taken by the audio thread */
    /* The audio thread's own */
    LV2_Atom_Forge forge;
    char error[ERROR_MOST]; /* why the last load failed, sent to the host; "": it did not */
    bool announce;          /* the host asked for the response, or it or the error has changed */
    edits requested;        /* made, or asked for, last */
    bool loads;             /* the worker has a request and has not replied */
    int64_t looked;         /* frames since the worker was asked to look for missing files */
    float wet, dry;         /* current gains, which are ramped within a block; -1: none yet */
    float active;           /* ramped from 0, bypassed, to 1; -1: none yet */
    float width;            /* current gain of the side signal, which is ramped; -1: none yet */
    cut low_cut, high_cut;
    float peak[4]; /* meters, linear: left and right in, left and right out */
    delay_line line;
    float block[10][CHUNK]; /* two inputs of each response, the dry signal, two outputs of each response */
} plugin;

/* Returns the value of a port limited to least..most; `least` without a port and for NaN. */
float gc_lv2_limited(const float *value, float least, float most);

/* Writes an error to the host's log. After a line it only counts for a second, because each message of a host may fail;
 * the next line has the count. */
void gc_lv2_log_error(plugin *p, const char *text);

/* A response that is to be loaded. */
typedef struct load {
    int slot;            /* of the path */
    const char *path;    /* shorter than PATH_MOST; "": the second response is unloaded; NULL: both are edited */
    const edits *wanted; /* how they are edited; NULL: as now */
    uint32_t number;     /* receives that of this load, with a path */
    bool keep;           /* if it fails, the path is missing */
} load;

/* Loads a response and exchanges it for that of its slot, or edits those that were edited in another way. Not for the
 * audio thread: it reads files and blocks. @return whether that was done; if not, `error` has the reason */
bool gc_lv2_load(plugin *p, load *l, gpuconv_error *error);

/* Asks the worker to edit the response if the ports have changed; called on the audio thread. At most one such request
 * is in flight; the ports are read again after its reply. While the host freewheels, the response is edited here, so
 * that an export begins with it. */
void gc_lv2_follow_edits(plugin *p);

/* Asks the worker now and then to load a response that is missing; called on the audio thread once a block. */
void gc_lv2_look_for_missing(plugin *p, int64_t frames);

/* Reads the host's messages on the audio thread: patch:Set of the response, patch:Get. */
void gc_lv2_read_messages(plugin *p);

/* Writes the messages to the host on the audio thread: patch:Set of the response if it is to be announced. */
void gc_lv2_write_messages(plugin *p);

/* Opens a SOFA set for the next block. Not for the audio thread. Returns the errors of gpuconv_sofa_open and
 * gpuconv_motion_new, TOPOLOGY (not two ears). */
gpuconv_status gc_lv2_load_space(plugin *p, const char *path, gpuconv_error *error);

/* Renders n frames with the sources where the ports say, on the audio thread. */
void gc_lv2_run_space(plugin *p, float *const *in, float *const *out, int64_t n);

/* Forgets the signal, and takes a set that was loaded. */
void gc_lv2_clear_space(plugin *p);

void gc_lv2_free_space(plugin *p);

/* Opens a UDP port for the messages of a head tracker, or shares it with the other instances that have, and closes the
 * one that was open before; 0: none is opened. After a failure that stays. Not for the audio thread. Returns the errors
 * of gc_osc_open, ARGUMENT (too many ports). */
gpuconv_status gc_lv2_track_head(plugin *p, int osc_port, gpuconv_error *error);

extern const LV2_Worker_Interface gc_lv2_worker;
extern const LV2_State_Interface gc_lv2_state;

#endif
