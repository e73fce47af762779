/* A minimal LV2 host for tests: loads the plug-in, processes blocks of a sine, runs the worker on a thread, and
 * exchanges messages and state. */
#ifndef GPUCONV_TESTS_LV2_HOST_H
#define GPUCONV_TESTS_LV2_HOST_H

#include "check.h"
#include "files.h"
#include "lv2/ports.h"

#include <lv2/atom/atom.h>
#include <lv2/atom/forge.h>
#include <lv2/atom/util.h>
#include <lv2/core/lv2.h>
#include <lv2/log/log.h>
#include <lv2/patch/patch.h>
#include <lv2/state/state.h>
#include <lv2/urid/urid.h>
#include <lv2/worker/worker.h>
#include <pthread.h>

enum { BLOCK = 64, BUFFER = 16384, RATE = 48000 };
typedef struct host {
    void *library;
    const LV2_Descriptor *plugin;
    LV2_Handle handle;
    const LV2_Worker_Interface *worker;
    union {
        LV2_Atom_Sequence sequence;
        uint8_t bytes[BUFFER];
    } control, notify;
    float number[PORTS], in[2][BLOCK], out[2][BLOCK];
    LV2_Atom_Forge forge;
    uint8_t request[BUFFER], reply[BUFFER]; /* messages to and from the worker */
    uint32_t request_size, reply_size;
    pthread_t thread;
    bool working;
    LV2_Worker_Status result;
    double phase;
    int loads;               /* requests that the worker received */
    int lines;               /* of the log */
    char announced[2][1024]; /* the paths that the plug-in announced last */
    char error[1024];        /* the same for the reason of a failure */
} host;

/* Maps a URI to the same number in every call. */
LV2_URID host_map_uri(LV2_URID_Map_Handle handle, const char *uri);

/* Frees the map of URIs. */
void host_free_uris(void);

/* Loads the plug-in, connects its ports and activates it. */
void host_begin(host *h, const char *uri);

/* Frees and unloads the plug-in. */
void host_end(host *h);

/* The same for a host in memory of its own. */
host *host_new(const char *uri);
void host_delete(host *h);

/* Processes one block of a sine. @param path a response to be set by a message; NULL: no message */
void host_play(host *h, const char *path);

/* The same with the second response. */
void host_play_second(host *h, const char *path);

/* Waits for the worker and delivers its reply, between two blocks. */
void host_deliver_reply(host *h);

/* Returns the output's peak over some blocks. */
float host_peak(host *h, int blocks);

/* Plays blocks, delivers replies, and returns the largest second difference of the left output, which a click raises;
 * that of host_play's sine is 0.0004 times its level. */
float host_roughness(host *h, int blocks);

/* Writes a response that is an impulse of the given level. @return its path */
const char *write_response(const char *name, int rate, float level);

/* The paths that host_store received last, and its inverse, which returns them. */
extern char host_stored_path[2][1024];
LV2_State_Status host_store(LV2_State_Handle handle, uint32_t key, const void *value, size_t size, uint32_t type,
                            uint32_t flags);
const void *host_retrieve(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags);

/* The data that host_retrieve_bytes returns. */
extern struct host_state {
    const void *bytes;
    size_t size;
    const char *type;
} host_state;
const void *host_retrieve_bytes(LV2_State_Handle handle, uint32_t key, size_t *size, uint32_t *type, uint32_t *flags);

/* Restores a state that contains the path. */
LV2_State_Status host_restore(const host *h, const char *path);

#endif
