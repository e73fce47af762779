/* The module that receives OSC, through liblo. One packet may be a bundle of several messages, so messages wait in a
 * queue until they are taken. */
#include "osc.h"

#include <lo/lo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE = 64 };

typedef struct receiver {
    lo_server server;
    gc_osc_message queue[QUEUE];
    int first, count; /* of the queue */
} receiver;

static char last_error[200]; /* of opening: liblo reports it to a function without context */

static void note_error(int number, const char *message, const char *where) {
    (void)snprintf(last_error, sizeof last_error, "%s (%d)%s%s", message ? message : "cannot be opened", number,
                   where ? ", " : "", where ? where : "");
}

static double value_of(char type, lo_arg *argument) {
    if (lo_is_numerical_type((lo_type)type))
        return (double)lo_hires_val((lo_type)type, argument);
    return type == 'T' ? 1 : type == 'F' ? 0 : (double)NAN;
}

/* Appends a message to the queue; drops it if the queue is full. */
static int on_message(const char *path, const char *types, lo_arg **argument, int count, lo_message message,
                      void *context) {
    receiver *r = context;
    (void)message;
    if (r->count == QUEUE || strlen(path) >= sizeof r->queue->address)
        return 0;
    gc_osc_message *m = &r->queue[(r->first + r->count++) % QUEUE];
    m->count = count;
    (void)snprintf(m->address, sizeof m->address, "%s", path);
    for (int i = 0; i < GC_OSC_VALUES; i++)
        m->value[i] = i < count ? value_of(types[i], argument[i]) : (double)NAN;
    return 0;
}

static void close_receiver(void *opened) {
    receiver *r = opened;
    if (r && r->server)
        lo_server_free(r->server);
    free(r);
}

static void *open_receiver(int port, char *why, size_t room) {
    char text[16];
    receiver *r = calloc(1, sizeof *r);
    (void)snprintf(text, sizeof text, "%d", port);
    (void)snprintf(last_error, sizeof last_error, "out of memory");
    if (r)
        r->server = lo_server_new_with_proto(text, LO_UDP, note_error);
    if (r && r->server && lo_server_add_method(r->server, NULL, NULL, on_message, r))
        return r;
    (void)snprintf(why, room, "%s", last_error);
    close_receiver(r);
    return NULL;
}

static bool take_message(void *opened, gc_osc_message *message) {
    receiver *r = opened;
    while (r->count == 0 && lo_server_recv_noblock(r->server, 0) > 0) {
    }
    if (r->count == 0)
        return false;
    *message = r->queue[r->first];
    r->first = (r->first + 1) % QUEUE;
    r->count--;
    return true;
}

__attribute__((visibility("default"))) gc_osc_module_get gpuconv_osc_module;

const gc_osc_module *gpuconv_osc_module(void) {
    static const gc_osc_module module = {open_receiver, take_message, close_receiver};
    return &module;
}
