/* The module that receives orientations by OSC through liblo. */
#include "follow.h"

#include <lo/lo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct receiver {
    lo_server_thread thread;
    void (*turn)(void *context, const float ypr[3]);
    void *context;
} receiver;

static char last_error[200]; /* of opening: liblo reports it to a function without context */

static void note_error(int number, const char *message, const char *where) {
    (void)snprintf(last_error, sizeof last_error, "%s (%d)%s%s", message ? message : "cannot be opened", number,
                   where ? ", " : "", where ? where : "");
}

static int on_message(const char *path, const char *types, lo_arg **argv, int argc, lo_message message, void *user) {
    const receiver *r = user;
    const size_t length = strlen(path);
    (void)types;
    (void)message;
    if (argc == 3 && length >= 3 && strcmp(path + length - 3, "ypr") == 0) {
        const float ypr[3] = {argv[0]->f, argv[1]->f, argv[2]->f};
        r->turn(r->context, ypr);
    }
    return 0;
}

static void *open_receiver(int port, void (*turn)(void *context, const float ypr[3]), void *context, char *why,
                           size_t room) {
    char text[16];
    receiver *r = calloc(1, sizeof *r);
    (void)snprintf(text, sizeof text, "%d", port);
    (void)snprintf(last_error, sizeof last_error, "out of memory");
    if (r) {
        *r = (receiver){.turn = turn, .context = context};
        r->thread = lo_server_thread_new(text, note_error);
    }
    if (r && r->thread && lo_server_thread_add_method(r->thread, NULL, "fff", on_message, r) &&
        lo_server_thread_start(r->thread) == 0)
        return r;
    (void)snprintf(why, room, "%s", last_error);
    if (r && r->thread)
        lo_server_thread_free(r->thread);
    free(r);
    return NULL;
}

static void close_receiver(void *opened) {
    receiver *r = opened;
    lo_server_thread_free(r->thread); /* stops it first */
    free(r);
}

__attribute__((visibility("default"))) const gc_osc_module *gpuconv_osc_module(void);

const gc_osc_module *gpuconv_osc_module(void) {
    static const gc_osc_module module = {open_receiver, close_receiver};
    return &module;
}
