/* The spatial forms of the LV2 plug-in: left and right as two sources that gpuconv_motion renders on the audio thread,
 * the exchange of the set, and head trackers. One channel is both sources.
 *
 * A head tracker sends orientations by OSC to a UDP port. The instances of a host that name the same port share it,
 * because a port is opened once. A thread takes the messages; the audio thread reads the latest angles from memory that
 * is never freed. */
#include "plugin.h"

#include "osc/osc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Head trackers ----------------------------------------------------------------------------------------------- */

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

/* Writes yaw, pitch and roll as the tracker last said; zeros without one. */
static void lv2_head_angles(const plugin *p, double angle[3]) {
    const int number = atomic_load(&p->space.tracker);
    for (int k = 0; k < 3; k++)
        angle[k] = number < 0 ? 0 : atomic_load(&trackers[number].angle[k]);
}

/* ---- Sources ----------------------------------------------------------------------------------------------------- */

static const double fade_seconds = 0.05, glide_seconds = 0.03; /* of another set, and in which a jump has 63 % */

struct space {
    gpuconv_sofa *set;
    gpuconv_path *path; /* of sources in front, before the ports place them */
    gpuconv_motion *motion;
};

static void free_space(space *s) {
    if (!s)
        return;
    gpuconv_motion_free(s->motion);
    gpuconv_path_free(s->path);
    gpuconv_sofa_free(s->set);
    free(s);
}

/* Opens the set of a new object. Returns the errors of gc_lv2_load_space. */
static gpuconv_status open_set(const plugin *p, const char *path, space *s, gpuconv_error *error) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    config.threads = 1;
    gpuconv_status status = gpuconv_sofa_open(path, p->rate, &s->set, error);
    if (!status && gpuconv_sofa_receivers(s->set) != OUTPUTS) {
        (void)snprintf(error->message, sizeof error->message,
                       "%.400s: a set for two ears is needed, not for %d receivers", path,
                       gpuconv_sofa_receivers(s->set));
        status = error->status = GPUCONV_ERROR_TOPOLOGY;
    }
    if (!status)
        status = gpuconv_path_new_still("stereo", 2, &s->path, error);
    if (!status)
        status = gpuconv_motion_new(s->set, s->path, &config, &s->motion, error);
    return status ? status : gpuconv_motion_start(s->motion, 0, error);
}

gpuconv_status gc_lv2_load_space(plugin *p, const char *path, gpuconv_error *error) {
    space *s = calloc(1, sizeof *s);
    if (!s) {
        (void)snprintf(error->message, sizeof error->message, "out of memory");
        return error->status = GPUCONV_ERROR_MEMORY;
    }
    gpuconv_status status = open_set(p, path, s, error);
    free_space(atomic_exchange(&p->space.retired, NULL));
    free_space(status ? s : atomic_exchange(&p->space.next, s));
    return status;
}

void gc_lv2_free_space(plugin *p) {
    free_space(atomic_load(&p->space.next));
    free_space(atomic_load(&p->space.retired));
    free_space(p->space.current);
    free_space(p->space.previous);
}

/* Takes a set that was loaded, once the last crossfade has ended and its set was handed back. */
static void take_set(plugin *p, bool fades) {
    space_exchange *e = &p->space;
    space *none = NULL;
    if (e->previous && e->fade_left == 0 && atomic_compare_exchange_strong(&e->retired, &none, e->previous))
        e->previous = NULL;
    space *next = e->previous ? NULL : atomic_exchange(&e->next, NULL);
    if (!next)
        return;
    e->previous = e->current;
    e->current = next;
    const int64_t latency = gpuconv_motion_latency(next->motion), rises = latency + gpuconv_motion_tail(next->motion);
    e->fade_left = fades && e->previous ? rises + (int64_t)(fade_seconds * p->rate) : 0;
    atomic_store(&p->slot[0].lead, (double)latency);
}

/* Moves the sources towards the ports, the short way around. */
static void move_sources(plugin *p, const space *s, const double *at) {
    double angle[3];
    lv2_head_angles(p, angle);
    gpuconv_motion_turn(s->motion, angle);
    for (int c = 0; c < 2; c++) {
        const double direction[3] = {at[0] + (c ? -0.5 : 0.5) * at[2], at[1], 1};
        gpuconv_motion_place(s->motion, c, direction);
    }
    for (int k = 0; k < 3; k++)
        if (p->parameter[YAW + k])
            *p->parameter[YAW + k] = (float)angle[k];
}

/* Returns the value of a port for an angle; 0 for NaN and without a port. */
static double port_angle(const float *value, float most) {
    return value && isfinite(*value) ? (double)gc_lv2_limited(value, -most, most) : 0;
}

static void glide(plugin *p, int64_t n) {
    const double wanted[3] = {port_angle(p->parameter[AZIMUTH], 180), port_angle(p->parameter[ELEVATION], 90),
                              (double)gc_lv2_limited(p->parameter[SPREAD], 0, 180)};
    const double part = 1 - exp(-(double)n / (glide_seconds * p->rate)), near = 0.01;
    for (int k = 0; k < 3; k++) {
        double *at = &p->space.at[k], way = k ? wanted[k] - *at : remainder(wanted[k] - *at, 360);
        *at = fabs(way) > near ? *at + part * way : wanted[k];
    }
}

void gc_lv2_clear_space(plugin *p) {
    float *const block[] = {p->block[0], p->block[0], p->block[1], p->block[1]};
    space_exchange *e = &p->space;
    e->at[0] = e->at[1] = e->at[2] = (double)NAN;
    e->fade_left = 0;
    take_set(p, false);
    if (!e->current)
        return;
    glide(p, 1);
    move_sources(p, e->current, e->at);
    memset(p->block[0], 0, sizeof p->block[0]);
    const int64_t rings = gpuconv_motion_tail(e->current->motion) + gpuconv_motion_latency(e->current->motion);
    for (int64_t at = 0; at < rings; at += CHUNK)
        gpuconv_motion_process(e->current->motion, (const float *const *)block, block + 2, CHUNK);
}

void gc_lv2_run_space(plugin *p, float *const *in, float *const *out, int64_t n) {
    space_exchange *e = &p->space;
    take_set(p, true);
    glide(p, n);
    const float scale = p->form.inputs == 1 ? 0.5F : 1, step = 1 / (float)(fade_seconds * p->rate);
    const bool fades = e->fade_left > 0;
    for (int k = 0; k < (fades ? 2 : 1); k++) {
        const space *s = k ? e->previous : e->current;
        move_sources(p, s, e->at);
        gpuconv_motion_process(s->motion, (const float *const *)in, out + (ptrdiff_t)OUTPUTS * k, n);
    }
    for (int64_t i = 0; i < n; i++) {
        const float x = fminf(1, (float)e->fade_left * step),
                    old = x * x * (3 - 2 * x); /* 1 until the new sound has risen */
        for (int c = 0; c < OUTPUTS; c++)
            out[c][i] = scale * (fades ? out[c][i] + old * (out[OUTPUTS + c][i] - out[c][i]) : out[c][i]);
        e->fade_left -= e->fade_left > 0;
    }
}
