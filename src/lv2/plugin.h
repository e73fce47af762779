/* The LV2 plug-in's instance, and the interfaces of its parts: worker (worker.c), messages on the audio thread
 * (messages.c) and saved state (state.c).
 *
 * Threads: work, save and restore may run at the same time. `loading` is held while a response is loaded, so that the
 * response that sounds, the saved path and the announced path are those of the last load. `path_lock` is held only
 * while `path` is copied, so that save never waits for a file. The audio thread takes neither lock: it receives a path
 * with the worker's response message. Loads are numbered; a message about a replaced response is dropped. */
#ifndef GPUCONV_LV2_PLUGIN_H
#define GPUCONV_LV2_PLUGIN_H

#include "gpuconv.h"

#include <lv2/atom/forge.h>
#include <lv2/core/lv2.h>
#include <lv2/log/logger.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <pthread.h>
#include <stdatomic.h>

#define PLUGIN_URI "urn:gpuconv:"
#define RESPONSE_URI PLUGIN_URI "response"

enum { CHUNK = 256, OUTPUTS = 2, PATH_MOST = 4096 };

/* Port indices, as in gpuconv.ttl. The audio inputs begin at AUDIO, the outputs follow. */
typedef enum port { CONTROL, NOTIFY, WET, DRY, GAIN, PREDELAY, FREEWHEEL, LATENCY, LATE_BLOCKS, AUDIO } port;

typedef struct uris {
    LV2_URID path, set, get, property, value, response, urid;
} uris;

/* The predelay: a ring of samples for each input. A change of the delay is crossfaded. */
typedef struct delay_line {
    float *samples;         /* inputs x capacity */
    int64_t capacity;       /* frames */
    int64_t position;       /* where the next frame is written */
    int64_t delay;          /* frames; -1: taken from the port without a crossfade by the first block */
    int64_t previous_delay; /* from which the crossfade starts */
    int64_t fade_frames, fade_left;
} delay_line;

typedef struct plugin {
    int inputs;
    double rate;
    /* Ports */
    const LV2_Atom_Sequence *control;
    LV2_Atom_Sequence *notify;
    const float *parameter[LATE_BLOCKS + 1]; /* input control ports; NULL: not connected */
    float *reported[LATE_BLOCKS + 1];        /* output control ports; NULL: not connected */
    const float *in[2];
    float *out[OUTPUTS];
    /* Features of the host; NULL: not supported */
    LV2_URID_Map *map;
    LV2_Worker_Schedule *worker;
    LV2_Log_Logger log;
    uris uri;
    /* The response */
    gpuconv_realtime *realtime;
    _Atomic double lead;         /* frames of the response before its time zero */
    pthread_mutex_t loading;     /* serialises loads; never taken by the audio thread */
    pthread_mutex_t path_lock;   /* protects `path`; never taken by the audio thread */
    char path[PATH_MOST];        /* of the response that was loaded last */
    _Atomic uint32_t load_count; /* number of the last load */
    /* The audio thread's own */
    LV2_Atom_Forge forge;
    char announced_path[PATH_MOST]; /* sent to the host */
    bool announce;                  /* the host asked for the response, or it has changed */
    float wet, dry;                 /* current gains, which are ramped within a block; -1: none yet */
    delay_line line;
    float block[4][CHUNK];
} plugin;

/* Writes an error to the host's log. */
void gc_lv2_log_error(plugin *p, const char *text);

/* Loads a response and exchanges it for the current one. Not for the audio thread: it reads files and blocks.
 * @param path   shorter than PATH_MOST
 * @param number receives the number of this load
 * @return whether the response was loaded; if not, `error` has the reason */
bool gc_lv2_load(plugin *p, const char *path, uint32_t *number, gpuconv_error *error);

/* Asks the worker to load a response; called on the audio thread. An empty or too long path is ignored.
 * @param length of the path, which need not end with a null character */
void gc_lv2_schedule_load(const plugin *p, const char *path, size_t length);

/* Reads the host's messages on the audio thread: patch:Set of the response, patch:Get. */
void gc_lv2_read_messages(plugin *p);

/* Writes the messages to the host on the audio thread: patch:Set of the response if it is to be announced. */
void gc_lv2_write_messages(plugin *p);

extern const LV2_Worker_Interface gc_lv2_worker;
extern const LV2_State_Interface gc_lv2_state;

#endif
