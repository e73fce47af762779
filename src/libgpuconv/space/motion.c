/*
 * Sources that move before the receivers of a set. Each hop every source has a new place, and so for each receiver a
 * delay and a response without that delay (ir/sofa_respond.c):
 *
 *      x -> delay line, its delay in a straight line over the hop -> filter that crosses to the next one -> sum -> y
 *
 * The delay has no jump, and the filters that cross are in phase, so that a linear crossfade keeps their energy. The
 * filters run in chunks of a fixed number of hops by the arrays of the CPU (gpuconv_arrays_job.hop), whatever the
 * lengths of the blocks that are fed.
 *
 * All responses have their onset at the frame `onset`, the latest of those on the path, and the delays begin at `base`,
 * a whole number below the shortest one on the path.
 */
#include "gpuconv_arrays.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/dsp/delay_line.h"
#include "libgpuconv/ir/sofa.h"
#include "path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 14 /* frames, about */ };

static const double speed_of_sound = 343; /* m/s */

/* What the places of a path need. */
typedef struct extent {
    double first_onset, last_onset; /* of the measurements, in frames */
    double shortest, longest;       /* delay at a receiver, that of the distance included, in frames */
} extent;

struct gpuconv_motion {
    const gpuconv_sofa *set;
    const gpuconv_path *path;
    gpuconv_motion_config config;
    int64_t hop, hops;   /* frames of a hop, hops of a chunk */
    int64_t taps, onset; /* of the responses without delay, and where their delay ends */
    int64_t base, span;  /* frames that are taken off every delay; frames of the longest one that remains */
    int64_t skip;        /* frames before time zero */
    gc_delay_line *line;
    gpuconv_arrays *arrays;
    float *input;     /* channels x (past + chunk), the chunk behind the frames that delays reach back to */
    float *delayed;   /* receivers x (chunk + 1): the last frame is a silent block, to which the last filter crosses */
    float *responses; /* receivers x (hops + 1) x taps */
    float *work;      /* taps */
    float *output;    /* receivers x (chunk + taps): the chunk, and what rings on */
    float *ready;     /* receivers x room: finished frames that were not fetched yet */
    int64_t room, begin, end; /* of `ready` */
    int64_t fed, filled;      /* frames since the beginning, and of them in the chunk */
    int64_t chunk;            /* number of the chunk that is filled */
    int64_t finished;         /* frames that were made ready */
    bool ended;
};

void gpuconv_motion_config_init(gpuconv_motion_config *config, size_t size) {
    const gpuconv_motion_config defaults = {.interval = 0.005};
    gc_sized_struct_init(config, size, &defaults, sizeof defaults);
}

static int64_t chunk_frames(const gpuconv_motion *m) {
    return m->hop * m->hops;
}

/* Returns the frames before a chunk that delays and their filters reach back to. */
static int64_t past_frames(const gpuconv_motion *m) {
    return m->span + (int64_t)2 * GC_DELAY_REACH + 1;
}

/* Finds the place of a channel at the beginning of a hop: that at the time at which its sound arrives, or with the
 * Doppler effect where the sound left, found by iteration. Returns the delay of the distance in frames. */
static double find_place(const gpuconv_motion *m, int64_t hop, int channel, double at[3]) {
    enum { ITERATIONS = 8 };
    const double rate = m->set->responses->rate;
    const double time = (double)(hop * m->hop - GC_DELAY_REACH + m->base - m->set->responses->lead) / rate;
    double seconds = 0;
    for (int i = 0; i < (m->config.doppler ? ITERATIONS : 1); i++) {
        gc_path_at(m->path, fmax(0, time - seconds), channel, at);
        seconds = sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) / speed_of_sound;
    }
    return m->config.doppler ? seconds * rate : 0;
}

/* Finds the measurements of a channel at the beginning of a hop. Returns the delay of the distance in frames. */
static double place(const gpuconv_motion *m, int64_t hop, int channel, gc_blend *blend) {
    double at[3];
    const double delay = find_place(m, hop, channel, at);
    gc_sofa_blend(m->set, at, at, m->config.interpolate, m->config.by_distance, blend);
    return delay;
}

/* Widens the extent by a place. Returns MEMORY, CANCELLED. */
static gpuconv_status widen(const gpuconv_motion *m, int64_t hop, int channel, extent *e, gpuconv_error *error) {
    gc_blend b;
    const double distance = place(m, hop, channel, &b);
    for (int r = 0; r < m->set->receivers; r++) {
        double delay = 0, onset = 0;
        gpuconv_status status = gc_sofa_delay(m->set, &b, r, &delay, error);
        for (int k = 0; k < 3 && !status; k++) {
            status = gc_sofa_onset(m->set, b.measurement[k], r, &onset, error);
            e->first_onset = fmin(e->first_onset, onset);
            e->last_onset = fmax(e->last_onset, onset);
        }
        if (status)
            return status;
        e->shortest = fmin(e->shortest, delay + distance);
        e->longest = fmax(e->longest, delay + distance);
    }
    return GPUCONV_OK;
}

/* Finds the extent of the whole path, and from it the lengths. Returns MEMORY, CANCELLED. */
static gpuconv_status measure(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t margin = 4; /* frames: once `base` is known, the hops begin at other times */
    extent e = {HUGE_VAL, 0, HUGE_VAL, 0};
    const double rate = m->set->responses->rate, last = m->path->seconds[m->path->count - 1] * rate;
    const int64_t hops = (int64_t)ceil((last + GC_DELAY_REACH + m->set->responses->lead) / (double)m->hop);
    for (int64_t h = 0; h <= hops; h++)
        for (int c = 0; c < m->path->channels; c++) {
            gpuconv_status status = gc_cancelled() ? gc_fail_cancelled(error, "the path") : widen(m, h, c, &e, error);
            if (status)
                return status;
        }
    m->onset = (int64_t)ceil(e.last_onset);
    m->taps = m->set->responses->frames + m->onset - (int64_t)floor(e.first_onset) + (int64_t)2 * GC_HALF_SINC;
    m->base =
        gc_min((int64_t)floor(e.shortest) - margin, m->onset + GC_HALF_SINC + GC_DELAY_REACH + m->set->responses->lead);
    m->span = (int64_t)ceil(e.longest) + margin - m->base;
    m->skip = m->onset + GC_HALF_SINC + GC_DELAY_REACH + m->set->responses->lead - m->base;
    return GPUCONV_OK;
}

/* Allocates what the lengths ask for. Returns MEMORY. */
static gpuconv_status allocate(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t receivers = m->set->receivers, chunk = chunk_frames(m);
    gpuconv_status status =
        gc_ir_check_memory(receivers * (m->hops + 2), (double)m->taps,
                           4.0 * (double)m->path->channels * (double)(past_frames(m) + chunk), error);
    if (status)
        return status;
    m->line = gc_delay_line_new();
    m->input = gc_calloc(m->path->channels, (past_frames(m) + chunk) * (int64_t)sizeof *m->input);
    m->delayed = gc_calloc(receivers, (chunk + 1) * (int64_t)sizeof *m->delayed);
    m->responses = gc_calloc(receivers * (m->hops + 1), m->taps * (int64_t)sizeof *m->responses);
    m->work = gc_calloc(m->taps, sizeof *m->work);
    m->output = gc_calloc(receivers, (chunk + m->taps) * (int64_t)sizeof *m->output);
    if (!m->line || !m->input || !m->delayed || !m->responses || !m->work || !m->output)
        return gc_fail_memory(error, "the moving sources");
    return gpuconv_arrays_new_cpu(m->config.threads, &m->arrays, error);
}

/* Checks the values of a configuration, and reads it. Returns ARGUMENT. */
static gpuconv_status read_config(const gpuconv_motion_config *from, gpuconv_motion *m, gpuconv_error *error) {
    gpuconv_motion_config *c = &m->config;
    *c = gpuconv_motion_config_default();
    const gc_sized_struct own = {c, sizeof *c, GC_SIZE_UP_TO(gpuconv_motion_config, threads), "gpuconv_motion_config"};
    gpuconv_status status = from ? gc_sized_struct_read(&own, from, error) : GPUCONV_OK;
    if (!status && !(c->interval > 0 && c->interval <= 1))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                         "responses are exchanged after more than 0 and up to 1 s, not %g", c->interval);
    return status ? status : gc_sofa_choose(m->set, &c->interpolate, error);
}

gpuconv_status gpuconv_motion_new(const gpuconv_sofa *set, const gpuconv_path *path,
                                  const gpuconv_motion_config *config, gpuconv_motion **motion, gpuconv_error *error) {
    if (!gc_begin(motion, set, __func__, error) || !path)
        return gc_fail_null(error, __func__);
    gpuconv_motion *m = gc_calloc(1, sizeof *m);
    if (!m)
        return gc_fail_memory(error, "the moving sources");
    m->set = set;
    m->path = path;
    gpuconv_status status = read_config(config, m, error);
    if (!status) {
        m->hop = gc_max(1, llrint(m->config.interval * set->responses->rate));
        m->hops = gc_max(1, CHUNK / m->hop);
        status = measure(m, error);
    }
    if (!status)
        status = allocate(m, error);
    if (status)
        gpuconv_motion_free(m);
    else
        *motion = m;
    return status;
}

void gpuconv_motion_free(gpuconv_motion *m) {
    if (!m)
        return;
    gpuconv_arrays_free(m->arrays);
    gc_delay_line_free(m->line);
    free(m->input);
    free(m->delayed);
    free(m->responses);
    free(m->work);
    free(m->output);
    free(m->ready);
    free(m);
}

int64_t gpuconv_motion_tail(const gpuconv_motion *m) {
    return m ? m->span + GC_DELAY_REACH + GC_DELAY_REACH + m->taps - 1 - m->skip : 0;
}

/* Makes the responses of hop `hop` of the chunk, and gives the delay at every receiver. Returns MEMORY, CANCELLED. */
static gpuconv_status make_responses(gpuconv_motion *m, int channel, int64_t hop, double *delay, gpuconv_error *error) {
    gc_blend b;
    const double distance = place(m, m->chunk * m->hops + hop, channel, &b);
    for (int r = 0; r < m->set->receivers; r++) {
        const gc_span to = {m->responses + (r * (m->hops + 1) + hop) * m->taps, m->work, m->taps};
        gpuconv_status status = gc_sofa_delay(m->set, &b, r, &delay[r], error);
        memset(to.taps, 0, (size_t)m->taps * sizeof *to.taps);
        if (!status)
            status = gc_sofa_align(m->set, &b, r, (double)(m->onset + GC_HALF_SINC), to, error);
        if (status)
            return status;
        delay[r] = fmin(fmax(delay[r] + distance - (double)m->base, 0), (double)m->span);
    }
    return GPUCONV_OK;
}

/* Delays a channel of the chunk for every receiver, and makes its responses. Returns MEMORY, CANCELLED. */
static gpuconv_status move(gpuconv_motion *m, int channel, gpuconv_error *error) {
    const int64_t past = past_frames(m), chunk = chunk_frames(m);
    const float *x = m->input + channel * (past + chunk) + past - GC_DELAY_REACH;
    double from[GC_MAX_CHANNELS] = {0}, to[GC_MAX_CHANNELS] = {0};
    gpuconv_status status = make_responses(m, channel, 0, from, error);
    for (int64_t h = 0; h < m->hops && !status; h++) {
        status = make_responses(m, channel, h + 1, to, error);
        for (int r = 0; r < m->set->receivers && !status; r++) {
            gc_delay_line_read(m->line, x + h * m->hop, from[r], to[r], m->hop,
                               m->delayed + r * (chunk + 1) + h * m->hop);
            from[r] = to[r];
        }
    }
    return status;
}

/* Adds a channel of the chunk to the output. Returns MEMORY, CANCELLED. */
static gpuconv_status filter(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t receivers = m->set->receivers, chunk = chunk_frames(m);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(m->delayed, receivers, chunk + 1);
    job.response = gpuconv_rows_of_floats(m->responses, receivers * (m->hops + 1), m->taps);
    job.output = gpuconv_rows_of_floats(m->output, receivers, chunk + m->taps);
    job.accumulate = true;
    job.hop = m->hop;
    job.interpolation = GPUCONV_ARRAYS_LINEAR;
    return gpuconv_arrays_run(m->arrays, &job, NULL, 0, NULL, error);
}

/* Makes room for the frames of a chunk behind those that are ready. Returns MEMORY. */
static gpuconv_status make_room(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t receivers = m->set->receivers, kept = m->end - m->begin, room = 2 * (kept + chunk_frames(m));
    if (m->end + chunk_frames(m) <= m->room)
        return GPUCONV_OK;
    float *larger = gc_calloc(receivers, room * (int64_t)sizeof *larger);
    if (!larger)
        return gc_fail_memory(error, "the moving sources");
    for (int64_t r = 0; r < receivers && m->ready; r++)
        memcpy(larger + r * room, m->ready + r * m->room + m->begin, (size_t)kept * sizeof *larger);
    free(m->ready);
    m->ready = larger;
    m->room = room;
    m->begin = 0;
    m->end = kept;
    return GPUCONV_OK;
}

/* Moves the frames of the chunk to those that are ready, but for those before time zero and behind the end. */
static void hand_over(gpuconv_motion *m) {
    const int64_t chunk = chunk_frames(m), first = m->chunk * chunk - m->skip;
    const int64_t begin = gc_min(chunk, gc_max(0, -first));
    const int64_t whole = m->ended ? m->fed + gpuconv_motion_tail(m) : first + chunk;
    const int64_t end = gc_max(begin, gc_min(chunk, whole - first));
    for (int r = 0; r < m->set->receivers; r++) {
        float *from = m->output + r * (chunk + m->taps);
        memcpy(m->ready + r * m->room + m->end, from + begin, (size_t)(end - begin) * sizeof *from);
        memmove(from, from + chunk, (size_t)m->taps * sizeof *from);
        memset(from + m->taps, 0, (size_t)chunk * sizeof *from);
    }
    m->end += end - begin;
    m->finished += end - begin;
}

/* Computes the chunk that is filled, and begins the next. Returns MEMORY, CANCELLED. */
static gpuconv_status run_chunk(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t past = past_frames(m), chunk = chunk_frames(m);
    gpuconv_status status = make_room(m, error);
    for (int c = 0; c < m->path->channels && !status; c++) {
        status = move(m, c, error);
        if (!status)
            status = filter(m, error);
    }
    if (status)
        return status;
    hand_over(m);
    for (int c = 0; c < m->path->channels; c++) {
        float *x = m->input + c * (past + chunk);
        memmove(x, x + chunk, (size_t)past * sizeof *x);
        memset(x + past, 0, (size_t)chunk * sizeof *x);
    }
    m->filled = 0;
    m->chunk++;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_motion_feed(gpuconv_motion *m, const float *const *in, int64_t frames, gpuconv_error *error) {
    if (!m || (frames > 0 && !in))
        return gc_fail_null(error, __func__);
    if (frames < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a block has 0 frames or more, not %lld", (long long)frames);
    if (m->ended)
        return gc_fail(error, GPUCONV_ERROR_STATE, "the input of the moving sources has ended");
    const int64_t past = past_frames(m), chunk = chunk_frames(m);
    gpuconv_status status = GPUCONV_OK;
    m->ended = frames == 0;
    for (int64_t at = 0; at < frames && !status;) {
        const int64_t part = gc_min(frames - at, chunk - m->filled);
        for (int c = 0; c < m->path->channels; c++)
            memcpy(m->input + c * (past + chunk) + past + m->filled, in[c] + at, (size_t)part * sizeof **in);
        m->filled += part;
        m->fed += part;
        at += part;
        if (m->filled == chunk)
            status = run_chunk(m, error);
    }
    while (m->ended && !status && m->finished < m->fed + gpuconv_motion_tail(m))
        status = run_chunk(m, error);
    return status;
}

gpuconv_status gpuconv_motion_fetch(gpuconv_motion *m, float *const *out, int64_t capacity, int64_t *frames) {
    if (!m || !out || !frames)
        return GPUCONV_ERROR_ARGUMENT;
    *frames = gc_max(0, gc_min(capacity, m->end - m->begin));
    for (int r = 0; r < m->set->receivers && *frames; r++)
        memcpy(out[r], m->ready + r * m->room + m->begin, (size_t)*frames * sizeof **out);
    m->begin += *frames;
    return GPUCONV_OK;
}
