/* Head trackers of the LV2 plug-in: UDP ports that receive orientations by OSC. The instances of a host that name the
 * same port share it, because a port is opened once. A thread takes the messages; the audio thread reads the latest
 * angles from memory that is never freed. */
#include "osc/osc.h"
#include "plugin.h"

#include <stdio.h>
#include <time.h>

enum { TRACKERS = 16 };

typedef struct tracker {
    int osc_port, users; /* protected by `opening` */
    gc_osc *osc;
    pthread_t thread;
    _Atomic bool quit;
    _Atomic double angle[3]; /* yaw, pitch, roll in degrees */
} tracker;

static tracker trackers[TRACKERS];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void *follow(void *argument) {
    const struct timespec interval = {0, 4000000};
    tracker *t = argument;
    double angle[3] = {0};
    while (!atomic_load(&t->quit)) {
        gc_osc_take_angles(t->osc, angle);
        for (int k = 0; k < 3; k++)
            atomic_store(&t->angle[k], angle[k]);
        nanosleep(&interval, NULL);
    }
    return NULL;
}

/* Opens a port. Returns the errors of gc_osc_open, MEMORY. */
static gpuconv_status start(tracker *t, int osc_port, gpuconv_error *error) {
    char where[40];
    (void)snprintf(where, sizeof where, "%d", osc_port);
    gpuconv_status status = gc_osc_open(where, &t->osc, error);
    if (status)
        return status;
    atomic_store(&t->quit, false);
    for (int k = 0; k < 3; k++)
        atomic_store(&t->angle[k], 0);
    if (pthread_create(&t->thread, NULL, follow, t) != 0) {
        gc_osc_close(t->osc);
        (void)snprintf(error->message, sizeof error->message, "cannot start the thread of the head tracker");
        return error->status = GPUCONV_ERROR_MEMORY;
    }
    t->osc_port = osc_port;
    t->users = 1;
    return GPUCONV_OK;
}

/* Shares the tracker of a port, or opens it in a free place. Returns the same errors, ARGUMENT. */
static gpuconv_status share(int osc_port, int *number, gpuconv_error *error) {
    int place = -1;
    for (int i = TRACKERS - 1; i >= 0; i--) {
        if (trackers[i].users == 0)
            place = i;
        else if (trackers[i].osc_port == osc_port) {
            trackers[i].users++;
            *number = i;
            return GPUCONV_OK;
        }
    }
    *number = place;
    if (place >= 0)
        return start(&trackers[place], osc_port, error);
    (void)snprintf(error->message, sizeof error->message, "more than %d UDP ports of head trackers", TRACKERS);
    return error->status = GPUCONV_ERROR_ARGUMENT;
}

gpuconv_status gc_lv2_track_head(plugin *p, int osc_port, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    int number = -1;
    pthread_mutex_lock(&opening);
    if (osc_port)
        status = share(osc_port, &number, error);
    const int old = status ? -1 : atomic_exchange(&p->space.tracker, number);
    if (old >= 0 && --trackers[old].users == 0) {
        atomic_store(&trackers[old].quit, true);
        pthread_join(trackers[old].thread, NULL);
        gc_osc_close(trackers[old].osc);
    }
    pthread_mutex_unlock(&opening);
    return status;
}

void gc_lv2_head_angles(const plugin *p, double angle[3]) {
    const int number = atomic_load(&p->space.tracker);
    for (int k = 0; k < 3; k++)
        angle[k] = number < 0 ? 0 : atomic_load(&trackers[number].angle[k]);
}
