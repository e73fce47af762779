/* Opens the sockets for OSC, because liblo cannot bind to an address, and loads the module that receives from them. */
#include "osc.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/number.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_PORT = 65535, ADDRESS = 80 /* characters */, MESSAGES = 1000 /* that are taken at a time */ };

struct gc_osc {
    const gc_osc_module *module;
    void *receiver;
};

/* Copies the address of ADDRESS:PORT or [ADDRESS]:PORT; `colon` is the last one. Returns whether it is so written. */
static bool copy_address(const char *where, const char *colon, char *address) {
    const bool brackets = *where == '[' && colon - where > 1 && colon[-1] == ']';
    const int length = (int)(colon - where) - 2 * brackets;
    if (length < 1 || length >= ADDRESS)
        return false;
    (void)snprintf(address, ADDRESS, "%.*s", length, where + brackets);
    return brackets || !strchr(address, ':');
}

/* Resolves the name of a port to an address, which freeaddrinfo frees. Returns ARGUMENT. */
static gpuconv_status find_port(const char *where, struct addrinfo **found, gpuconv_error *error) {
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
    char address[ADDRESS] = "127.0.0.1";
    int64_t number;
    if (gc_integer_parse(port, &number) && number >= 1 && number <= MAX_PORT &&
        (!colon || copy_address(where, colon, address)) && getaddrinfo(address, port, &hints, found) == 0)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                   "'%.80s' is no UDP port; use PORT, ADDRESS:PORT or [ADDRESS]:PORT, with a port from 1 to %d and a "
                   "numeric address, such as 0.0.0.0 for all",
                   where, MAX_PORT);
}

gpuconv_status gc_osc_check(const char *where, gpuconv_error *error) {
    struct addrinfo *found;
    gpuconv_status status = find_port(where, &found, error);
    if (!status)
        freeaddrinfo(found);
    return status;
}

/* Opens a socket at a port. Returns ARGUMENT, DEVICE. */
static gpuconv_status bind_port(const char *where, int *fd, gpuconv_error *error) {
    struct addrinfo *to;
    gpuconv_status status = find_port(where, &to, error);
    if (status)
        return status;
    *fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, to->ai_addr, to->ai_addrlen) != 0) {
        status = gc_fail(error, GPUCONV_ERROR_DEVICE, "UDP port %.80s: %s; choose another", where, strerror(errno));
        if (*fd >= 0)
            close(*fd);
    }
    freeaddrinfo(to);
    return status;
}

gpuconv_status gc_osc_open(const char *where, gc_osc **osc, gpuconv_error *error) {
    char why[400];
    int fd;
    gc_osc_module_get *get;
    *osc = NULL;
    gpuconv_status status = gc_osc_check(where, error);
    if (status)
        return status;
    *(void **)&get = gc_module_load("gpuconv-osc", GC_OSC_MODULE, why, sizeof why);
    if (!get)
        return gc_fail(
            error, GPUCONV_ERROR_UNSUPPORTED,
            "OSC needs the module gpuconv-osc (Debian: the package gpuconv-sound, or liblo-dev to build it): %s", why);
    gc_osc *created = gc_calloc(1, sizeof *created);
    if (!created)
        return gc_fail_memory(error, "OSC");
    created->module = get();
    status = bind_port(where, &fd, error);
    if (!status && !(created->receiver = created->module->open(fd, why, sizeof why)))
        status = gc_fail(error, GPUCONV_ERROR_DEVICE, "UDP port %.80s: %s", where, why);
    if (status)
        free(created);
    else
        *osc = created;
    return status;
}

bool gc_osc_take(gc_osc *osc, gc_osc_message *message) {
    return osc->module->take(osc->receiver, message);
}

void gc_osc_take_angles(gc_osc *osc, double angle[3]) {
    gc_osc_message m;
    for (int taken = 0; taken < MESSAGES && gc_osc_take(osc, &m); taken++) {
        const size_t length = strlen(m.address);
        const double *v = m.value;
        if (m.count == 3 && length >= 3 && strcmp(m.address + length - 3, "ypr") == 0 && fabs(v[0]) <= 360 &&
            fabs(v[1]) <= 360 && fabs(v[2]) <= 360)
            memcpy(angle, v, 3 * sizeof *angle);
    }
}

void gc_osc_close(gc_osc *osc) {
    if (osc)
        osc->module->close(osc->receiver);
    free(osc);
}
