/* Remote control by OSC through liblo: a UDP port that is read without waiting. */
#include "control.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <lo/lo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct gc_control {
    lo_server server;
    gc_control_event event;
    bool is_new;
    char where[200], problem[300];
};

static int receive(const char *path, const char *types, lo_arg **values, int count, lo_message message, void *context) {
    gc_control *c = context;
    double value = NAN;
    (void)message;
    if (count > 0 && lo_is_numerical_type((lo_type)types[0]))
        value = (double)lo_hires_val((lo_type)types[0], values[0]);
    else if (count > 0 && (types[0] == 'T' || types[0] == 'F'))
        value = types[0] == 'T';
    c->is_new = gc_control_read_osc(path, value, &c->event);
    return 0;
}

static char *problem_of_open; /* liblo's handler of errors has no context while a server opens */

static void note_problem(int number, const char *text, const char *path) {
    (void)number, (void)path;
    if (problem_of_open)
        (void)snprintf(problem_of_open, 300, "%s", text ? text : "");
}

static void osc_close(gc_control *c) {
    if (c && c->server)
        lo_server_free(c->server);
    free(c);
}

static gpuconv_status osc_open(const char *where, gc_control **control, gpuconv_error *error) {
    *control = NULL;
    gc_control *c = gc_calloc(1, sizeof *c);
    if (!c)
        return gc_fail_memory(error, "remote control");
    problem_of_open = c->problem;
    c->server = lo_server_new_with_proto(where, LO_UDP, note_problem);
    problem_of_open = NULL;
    if (!c->server || !lo_server_add_method(c->server, NULL, NULL, receive, c)) {
        gpuconv_status status = gc_fail(error, GPUCONV_ERROR_DEVICE, "OSC port %s: %s", where,
                                        *c->problem ? c->problem : "cannot be opened");
        osc_close(c);
        return status;
    }
    (void)snprintf(c->where, sizeof c->where, "OSC on UDP port %d", lo_server_get_port(c->server));
    *control = c;
    return GPUCONV_OK;
}

static const char *osc_where(const gc_control *c) {
    return c->where;
}

static bool osc_take(gc_control *c, gc_control_event *event) {
    c->is_new = false;
    while (!c->is_new && lo_server_recv_noblock(c->server, 0) > 0) {
    }
    *event = c->event;
    return c->is_new;
}

__attribute__((visibility("default"))) gc_control_system_get gpuconv_control_system;

const gc_control_system *gpuconv_control_system(void) {
    static const gc_control_system system = {osc_open, osc_where, osc_take, osc_close};
    return &system;
}
