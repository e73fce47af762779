/*
 * Sources and receivers that move in a simulated room (gpuconv_rooms.h). The room takes the place of the set: each
 * moment a channel has new responses, simulated for the places of its source and of the receivers. In them all images
 * are earlier by the delay of the direct sound, which the delay line carries in a straight line from moment to moment:
 *
 *      x -> delay of the direct sound -> response from the direct sound on, on its way to the next one -> y
 *
 * The other images move against the direct sound. Where a straight crossfade of two responses that differ by a phase p
 * is off by p^2 / 8, the cubic through the responses of four moments is off by 0.023 p^4, and a simulation takes longer
 * than the transforms of twice as many signals.
 *
 * The responses of the moments of a chunk are simulated at once, on all threads. A channel keeps its response while
 * neither end moves. As the input side is weighted, all images of a sound are those of the places where its direct
 * sound left and arrived.
 */
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "motion.h"
#include "path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL_FRAMES = 24 /* half the kernel of an image */ };

static const int64_t ring_bytes = INT64_C(1) << 28; /* of the spectra of a chunk, about */
static const double nearest = 0.05 /* m, of a source and a receiver */;

struct gc_motion_room {
    gpuconv_room box;
    const gpuconv_path *receiver_path;
    gpuconv_path *still[2]; /* of sources and of receivers that stay */
    gpuconv_arrays *arrays;
    gpuconv_rooms_plan *plan;
    gpuconv_rooms_job job;       /* the simulation of a chunk */
    int64_t onset;               /* frames of a response before the direct sound */
    gpuconv_room_point first[2]; /* places of the first source and receiver at the beginning */
    int receivers;
    gpuconv_room_point *channel, *array; /* the sources and receivers as they were given */
    gpuconv_room_point *last;            /* per channel and receiver: source and receiver at the last moment */

    /* Of the responses that are simulated for a chunk: `count` of a channel at a moment. */
    int64_t count;
    int *slot; /* the numbers of their spectra */
    gpuconv_room *room;
    gpuconv_room_point *source, *receiver; /* per receiver */
    uint64_t *seed;
    float *taps;
};

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

/* Checks that all rows of a track, moved by `offset`, are in the room. Returns ARGUMENT. */
static gpuconv_status check_inside(const gc_motion_room *r, const gc_track *t, const double offset[3], const char *what,
                                   int index, gpuconv_error *error) {
    for (int64_t i = 0; i < t->count; i++)
        for (int a = 0; a < 3; a++) {
            const double at = t->value[i * GC_TRACK_VALUES + a] + offset[a], size = r->box.size[a];
            if (!(at > 0 && at < size))
                return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                               "%s %d is at %c = %g m at %g s; use more than 0 and less than %g, the size of the room",
                               what, index + 1, "xyz"[a], at, t -> seconds[i], size);
        }
    return GPUCONV_OK;
}

/* Returns the least length of a vector that goes in a straight line from `a` to `b`. */
static double least_length(const double a[3], const double b[3]) {
    double along = 0, square = 0, length = 0;
    for (int k = 0; k < 3; k++) {
        along -= a[k] * (b[k] - a[k]);
        square += (b[k] - a[k]) * (b[k] - a[k]);
    }
    const double part = square > 0 ? fmin(fmax(along / square, 0), 1) : 0;
    for (int k = 0; k < 3; k++)
        length = hypot(length, a[k] + part * (b[k] - a[k]));
    return length;
}

static void subtract(const gc_track *a, const gc_track *b, const double offset[3], double seconds, double to[3]) {
    double from[3];
    gc_track_at(a, seconds, to);
    gc_track_at(b, seconds, from);
    for (int k = 0; k < 3; k++)
        to[k] -= from[k] + offset[k];
}

/* Returns the least distance of a track from another one that is moved by `offset`. */
static double least_distance(const gc_track *a, const gc_track *b, const double offset[3]) {
    double seconds = 0, from[3], to[3];
    subtract(a, b, offset, seconds, from);
    double least = least_length(from, from);
    for (int64_t i = 0, k = 0; i < a->count || k < b->count;) {
        const double now = fmin(i < a->count ? a->seconds[i] : HUGE_VAL, k < b->count ? b->seconds[k] : HUGE_VAL);
        subtract(a, b, offset, nextafter(now, 0), to); /* rows of the same time are a jump */
        least = fmin(least, least_length(from, to));
        subtract(a, b, offset, now, from);
        least = fmin(least, least_length(from, from));
        i += i < a->count && a->seconds[i] <= now;
        k += k < b->count && b->seconds[k] <= now;
    }
    return least;
}

/* Checks all places of sources and receivers. Returns ARGUMENT. */
static gpuconv_status check_paths(const gpuconv_motion *m, gpuconv_error *error) {
    static const double none[3] = {0};
    const gc_motion_room *r = m->room;
    const gc_track *receivers = &r->receiver_path->track[0];
    gpuconv_status status = GPUCONV_OK;
    for (int c = 0; c < m->path->channels && !status; c++)
        status = check_inside(r, &m->path->track[c], none, "channel", c, error);
    for (int i = 0; i < r->receivers && !status; i++) {
        double offset[3];
        for (int k = 0; k < 3; k++)
            offset[k] = r->array[i].at[k] - r->array[0].at[k];
        status = check_inside(r, receivers, offset, "receiver", i, error);
        for (int c = 0; c < m->path->channels && !status; c++) {
            const double least = least_distance(&m->path->track[c], receivers, offset);
            if (least < nearest)
                status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                                 "channel %d and receiver %d come within %.2g m of each other; use %g m or more", c + 1,
                                 i + 1, least, nearest);
        }
    }
    return status;
}

/* Checks the counts of a job and its paths. Returns ARGUMENT. */
static gpuconv_status check_job(const gpuconv_motion *m, const gpuconv_rooms_job *job, int64_t each,
                                gpuconv_error *error) {
    const gc_motion_room *r = m->room;
    if (!job->room || !job->receiver || (!job->source && !m->path))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "job.%s is NULL",
                       !job->room       ? "room"
                       : !job->receiver ? "receiver"
                                        : "source, without a path,");
    if (job->rooms != 1 || job->receivers * each > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%lld rooms and %lld receivers of %lld channels; use 1 room and 1 to %d channels in all",
                       (long long)job->rooms, (long long)job->receivers, (long long)each, GC_MAX_CHANNELS);
    if ((m->path && !m->path->metres) || (r->receiver_path && !r->receiver_path->metres))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a path in a room is in metres (gpuconv_path_new_in_room)");
    if (r->receiver_path && r->receiver_path->channels != 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the path of the receivers has 1 channel, not %d",
                       r->receiver_path->channels);
    if (m->path && job->source && job->sources != 1 && job->sources != m->path->channels)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%lld sources for a path of %d channels; use 1 or %d",
                       (long long)job->sources, m->path->channels, m->path->channels);
    return GPUCONV_OK;
}

/* ---- Places and responses ---------------------------------------------------------------------------------------- */

double gc_motion_room_within(const gc_motion_room *r, int axis, double at) {
    return fmin(fmax(at, 0.001), r->box.size[axis] - 0.001);
}

/* Turns a point with the head around `from`, and moves it from there to `to`, within the room. */
static void place_receiver(const gc_motion_room *r, const gc_rotation *head, const gpuconv_room_point *given,
                           const double from[3], const double to[3], gpuconv_room_point *p) {
    const double azimuth = given->azimuth * M_PI / 180, elevation = given->elevation * M_PI / 180;
    const double axis[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth), sin(elevation)};
    double in_head[3] = {0};
    *p = *given;
    for (int a = 0; a < 3; a++) {
        p->at[a] = to[a];
        for (int k = 0; k < 3; k++) {
            p->at[a] += head->row[a][k] * (given->at[k] - from[k]);
            in_head[a] += head->row[a][k] * axis[k];
        }
        p->at[a] = gc_motion_room_within(r, a, p->at[a]);
    }
    if (head->row[0][0] == 1 && head->row[1][1] == 1)
        return;
    p->azimuth = atan2(in_head[1], in_head[0]) * 180 / M_PI;
    p->elevation = asin(fmax(-1, fmin(1, in_head[2]))) * 180 / M_PI;
}

/* Finds the places of a channel and of all receivers at a time, and the delays in frames. */
static void place(const gpuconv_motion *m, double seconds, int channel, const gc_rotation *head,
                  gpuconv_room_point *points, double *delay) {
    const gc_motion_room *r = m->room;
    double at[3];
    gc_path_at(r->receiver_path, fmax(0, seconds), 0, at);
    for (int i = 0; i < r->receivers; i++) {
        gpuconv_room_point *source = &points[2 * i], *receiver = &points[2 * i + 1];
        place_receiver(r, head, &r->array[i], r->array[0].at, at, receiver);
        *source = r->channel[channel];
        double frames = gc_motion_find_place(m, seconds, channel, receiver->at, source->at);
        if (gc_room_distance(source->at, receiver->at) < nearest) { /* a control has placed it there */
            source->at[2] += source->at[2] < r->box.size[2] / 2 ? nearest : -nearest;
            frames = gc_room_distance(source->at, receiver->at) / m->speed * m->rate;
        }
        for (int k = 0; k < m->each; k++)
            delay[i * m->each + k] = fmin(frames, (double)m->span);
    }
}

/* Simulates the responses that were added to the list. Returns ARGUMENT, MEMORY, CANCELLED. */
static gpuconv_status simulate(gc_motion_room *r, gpuconv_error *error) {
    r->plan->rooms.job.rooms = r->count * r->receivers;
    return r->count ? gpuconv_rooms_plan_run(r->plan, &r->job, r->taps, NULL, 0, NULL, error) : GPUCONV_OK;
}

/* Adds the responses of a channel to the list, for the points of place(). */
static void add(gc_motion_room *r, const gpuconv_room_point *points, int slot) {
    for (int i = 0; i < r->receivers; i++) {
        r->source[r->count * r->receivers + i] = points[2 * i];
        r->receiver[r->count * r->receivers + i] = points[2 * i + 1];
    }
    r->slot[r->count++] = slot;
}

/* Makes the spectrum of a response: pool task `response x receivers + receiver`. */
static void transform(void *context, int64_t index, int worker) {
    gpuconv_motion *m = context;
    const float *taps = m->room->taps + index * m->taps;
    float *to = m->spectrum[m->room->slot[index / m->receivers]] + index % m->receivers * m->floats;
    (void)worker;
    gc_fft_forward_rows(m->fft, &taps, m->taps, (float)(2 / (double)m->points), to);
}

gpuconv_status gc_motion_room_find(gpuconv_motion *m, gpuconv_error *error) {
    gc_motion_room *r = m->room;
    const int64_t points = 2 * (int64_t)r->receivers;
    const int slots = (int)(m->hops + m->kept); /* of a channel */
    gpuconv_room_point *now = gc_calloc(points, sizeof *now);
    if (!now)
        return gc_fail_memory(error, "the moving sources");
    r->count = 0;
    for (int64_t moment = m->chunk > 0 ? m->kept : 0; moment < m->hops + m->kept; moment++) {
        const double seconds = gc_motion_time(m, moment - 1);
        const gc_rotation head = gc_motion_head(m, seconds);
        for (int c = 0; c < m->channels; c++) {
            int *slot = &m->slot[moment * m->channels + c], before = moment ? slot[-m->channels] : -1;
            place(m, seconds, c, &head, now, m->delay + (moment * m->channels + c) * m->receivers);
            *slot = before;
            if (moment == 0 || memcmp(now, r->last + c * points, (size_t)points * sizeof *now) != 0) {
                *slot = c * slots + (before + 1) % slots;
                add(r, now, *slot);
                memcpy(r->last + c * points, now, (size_t)points * sizeof *now);
            }
        }
    }
    free(now);
    gpuconv_status status = simulate(r, error);
    for (int64_t i = 0; i < r->count && !status; i++) {
        float **spectrum = &m->spectrum[r->slot[i]];
        *spectrum = *spectrum ? *spectrum : gc_calloc(m->receivers, m->floats * (int64_t)sizeof **spectrum);
        status = *spectrum ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
    }
    if (!status)
        gc_pool_run(m->pool, transform, m, r->count * m->receivers);
    return status;
}

/* ---- The object -------------------------------------------------------------------------------------------------- */

/* Copies the points of the job, and makes the paths of ends that stay. Returns ARGUMENT, MEMORY. */
static gpuconv_status copy_points(gpuconv_motion *m, const gpuconv_rooms_job *job, gpuconv_error *error) {
    static const double zero = 0;
    gc_motion_room *r = m->room;
    const int channels = m->path ? m->path->channels : (int)gc_min(job->sources, GC_MAX_SOURCES + 1);
    r->channel = gc_calloc(channels, sizeof *r->channel);
    r->array = gc_calloc(r->receivers, sizeof *r->array);
    double *at = gc_calloc(channels, 3 * (int64_t)sizeof *at);
    gpuconv_status status = r->channel && r->array && at ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
    for (int c = 0; c < channels && !status; c++) {
        r->channel[c] = job->source ? job->source[job->sources > 1 ? c : 0] : (gpuconv_room_point){.omni = 1};
        memcpy(at + 3 * (int64_t)c, r->channel[c].at, sizeof r->channel[c].at);
    }
    if (!status)
        memcpy(r->array, job->receiver, (size_t)r->receivers * sizeof *r->array);
    if (!status && !m->path)
        status = gpuconv_path_new_in_room(&zero, at, 1, channels, &r->still[0], error);
    if (!status && !r->receiver_path)
        status = gpuconv_path_new_in_room(&zero, job->receiver->at, 1, 1, &r->still[1], error);
    free(at);
    m->path = m->path ? m->path : r->still[0];
    r->receiver_path = r->receiver_path ? r->receiver_path : r->still[1];
    return status;
}

gpuconv_status gc_motion_room_open(gpuconv_motion *m, const gpuconv_rooms_job *job, const gpuconv_path *receiver_path,
                                   gpuconv_error *error) {
    gc_motion_room *r = m->room = gc_calloc(1, sizeof *r);
    if (!r)
        return gc_fail_memory(error, "the moving sources");
    r->receiver_path = receiver_path;
    if (m->config.backend == GPUCONV_BACKEND_CUDA)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "movement in a room is rendered on the CPU only");
    gpuconv_status status = gpuconv_arrays_new_cpu(m->config.threads, &r->arrays, error);
    if (!status)
        status = gpuconv_rooms_plan_new(r->arrays, job, &r->plan, error);
    if (status)
        return status;
    gc_rooms *rooms = &r->plan->rooms;
    m->each = rooms->channels;
    status = check_job(m, &rooms->job, m->each, error);
    if (!status)
        status = gc_room_check(rooms->job.room, 0, error);
    if (status)
        return status;
    r->receivers = (int)rooms->job.receivers;
    r->box = *rooms->job.room;
    r->onset = KERNEL_FRAMES + (rooms->job.ears ? rooms->job.ears->responses->lead : 0);
    status = copy_points(m, &rooms->job, error);
    if (!status)
        status = check_paths(m, error);
    m->config.doppler = true;
    m->receivers = r->receivers * m->each;
    m->rate = rooms->job.rate;
    m->speed = rooms->speed;
    r->job = rooms->job;
    rooms->job.sources = rooms->job.receivers = 1;
    rooms->job.origin = r->onset;
    rooms->job.frames += r->onset;
    rooms->aligned = true;
    return status;
}

gpuconv_status gc_motion_room_measure(gpuconv_motion *m, gpuconv_error *error) {
    gc_motion_room *r = m->room;
    const double *size = r->box.size;
    m->taps = r->plan->rooms.job.frames;
    m->span = (int64_t)ceil(hypot(hypot(size[0], size[1]), size[2]) / m->speed * m->rate);
    m->past = m->span + (int64_t)2 * GC_DELAY_REACH + 1;
    m->skip = r->onset + GC_DELAY_REACH;
    m->tail = m->span + (int64_t)2 * GC_DELAY_REACH + m->taps - 1 - m->skip;
    const double bytes = 4 * (double)m->channels * m->receivers * (double)gc_power_of_two(m->hop + m->taps - 1);
    m->hops = gc_max(1, gc_min(m->hops, (int64_t)((double)ring_bytes / bytes)));
    const double responses = (double)(m->hops + m->kept) * m->channels;
    if (responses * r->receivers > 0x1p30)
        return gc_fail_memory(error, "the moving sources");
    m->responses = (int)responses;
    return GPUCONV_OK;
}

gpuconv_status gc_motion_room_begin(gpuconv_motion *m, gpuconv_error *error) {
    gc_motion_room *r = m->room;
    const int64_t points = (int64_t)m->responses * r->receivers;
    r->last = gc_calloc(m->channels, 2 * r->receivers * (int64_t)sizeof *r->last);
    r->slot = gc_calloc(m->responses, sizeof *r->slot);
    r->room = gc_calloc(points, sizeof *r->room);
    r->source = gc_calloc(points, sizeof *r->source);
    r->receiver = gc_calloc(points, sizeof *r->receiver);
    r->seed = gc_calloc(points, sizeof *r->seed);
    r->taps = gc_alloc(points * m->each, m->taps * (int64_t)sizeof *r->taps);
    if (!(r->last && r->slot && r->room && r->source && r->receiver && r->seed && r->taps))
        return gc_fail_memory(error, "the moving sources");
    for (int64_t i = 0; i < points; i++) {
        r->room[i] = r->box;
        r->seed[i] = r->job.seed;
    }
    r->job.room = r->room;
    r->job.source = r->source;
    r->job.receiver = r->receiver;
    r->job.seeds = r->seed;
    const gc_rotation head = gc_motion_head(m, 0);
    place(m, 0, 0, &head, r->last, m->delay);
    memcpy(r->first, r->last, sizeof r->first);
    r->plan->rooms.first = r->first;
    add(r, r->last, 0);
    return simulate(r, error); /* what is refused is refused here */
}

void gc_motion_room_free(gc_motion_room *r) {
    if (!r)
        return;
    gpuconv_rooms_plan_free(r->plan);
    gpuconv_arrays_free(r->arrays);
    gpuconv_path_free(r->still[0]);
    gpuconv_path_free(r->still[1]);
    free(r->channel);
    free(r->array);
    free(r->last);
    free(r->slot);
    free(r->room);
    free(r->source);
    free(r->receiver);
    free(r->seed);
    free(r->taps);
    free(r);
}
