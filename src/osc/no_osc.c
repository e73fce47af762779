/* Remote control by OSC in a build without sockets as POSIX has them. */
#include "osc.h"

#include "libgpuconv/core/error.h"

gpuconv_status gc_osc_check(const char *where, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%.80s: this build has no remote control by OSC", where);
}

gpuconv_status gc_osc_open(const char *where, gc_osc **osc, gpuconv_error *error) {
    *osc = NULL;
    return gc_osc_check(where, error);
}

bool gc_osc_take(gc_osc *osc, gc_osc_message *message) {
    (void)osc;
    (void)message;
    return false;
}

void gc_osc_take_angles(gc_osc *osc, double angle[3]) { /* NOLINT(readability-non-const-parameter): as in osc.c */
    (void)osc;
    (void)angle;
}

void gc_osc_close(gc_osc *osc) {
    (void)osc;
}
