/* The module that receives OSC, through liblo. One packet may be a bundle of several messages, so messages wait in a
 * queue until they are taken. */
#include "osc.h"

#include <errno.h>
#include <fcntl.h>
#include <lo/lo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUEUE = 64, PACKETS = 64 /* without a message that are skipped at a time */ };

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
    gc_osc_message m = {.count = count};
    (void)snprintf(m.address, sizeof m.address, "%s", path);
    for (int i = 0; i < GC_OSC_VALUES; i++)
        m.value[i] = i < count ? value_of(types[i], argument[i]) : (double)NAN;
    r->queue[(r->first + r->count++) % QUEUE] = m;
    return 0;
}

static void close_receiver(void *opened) {
    receiver *r = opened;
    if (r && r->server)
        lo_server_free(r->server);
    free(r);
}

/* Makes a server whose socket, at any port of all interfaces, is replaced before it receives anything. Its queue for
 * messages with a time in the future, whose length a sender would determine, is not used: they are taken at once. */
static void *open_receiver(int socket, char *why, size_t room) {
    receiver *r = calloc(1, sizeof *r);
    (void)snprintf(last_error, sizeof last_error, "out of memory");
    if (r)
        r->server = lo_server_new_with_proto(NULL, LO_UDP, note_error);
    bool good = r && r->server && lo_server_add_method(r->server, NULL, NULL, on_message, r);
    if (good && dup3(socket, lo_server_get_socket_fd(r->server), O_CLOEXEC) < 0) {
        (void)snprintf(last_error, sizeof last_error, "%s", strerror(errno));
        good = false;
    }
    close(socket);
    if (good) {
        (void)lo_server_enable_queue(r->server, 0, 1);
        return r;
    }
    (void)snprintf(why, room, "%s", last_error);
    close_receiver(r);
    return NULL;
}

static bool take_message(void *opened, gc_osc_message *message) {
    receiver *r = opened;
    for (int packets = 0; packets < PACKETS && r->count == 0 && lo_server_wait(r->server, 0) > 0; packets++)
        (void)lo_server_recv(r->server); /* its result does not tell a bad packet from none */
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
