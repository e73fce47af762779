/*
 * Sources that move before the receivers of a set. Each hop every source has a new place, and so for each receiver a
 * delay and a response without that delay (ir/sofa_respond.c):
 *
 *      x -> delay line, its delay in a straight line over the hop -> filter that crosses to the next one -> sum -> y
 *
 * The delay has no jump, and the filters that cross are in phase, so that a linear crossfade keeps their energy. Hops
 * are computed in chunks (motion_render.c), whatever the lengths of the blocks that are fed.
 *
 * All responses have their onset at the frame `onset`, the latest one of the set, and the delays begin at `base`, a
 * whole number below the shortest one.
 */
#include "motion.h"

#include "gpuconv_rooms.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/sized_struct.h"
#include "libgpuconv/ir/settings.h"
#include "path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 /* pool tasks of a chunk, about */ };

static const double speed_of_sound = 343; /* m/s */

void gpuconv_motion_config_init(gpuconv_motion_config *config, size_t size) {
    const gpuconv_motion_config defaults = {.interval = 0.005};
    gc_sized_struct_init(config, size, &defaults, sizeof defaults);
}

/* Measures the delays of a measurement, which the set keeps: a pool task. A failure is found again by measure(). */
static void measure_onsets(void *context, int64_t index, int worker) {
    const gpuconv_motion *m = context;
    double onset;
    (void)worker;
    for (int r = 0; r < m->receivers; r++)
        (void)gc_sofa_onset(m->set, (int)index, r, &onset, NULL);
}

/* Finds the delays of all measurements and distances, and from them the lengths. Returns MEMORY, CANCELLED. */
static gpuconv_status measure(gpuconv_motion *m, gpuconv_error *error) {
    const gpuconv_sofa *s = m->set;
    double first = HUGE_VAL, last = 0, shortest = HUGE_VAL, longest = 0, least, most;
    gc_pool_run(m->pool, measure_onsets, m, s->measurements);
    for (int64_t i = 0; i < (int64_t)s->measurements * m->receivers; i++) {
        double onset;
        gpuconv_status status = gc_cancelled()
                                    ? gc_fail_cancelled(error, "the path")
                                    : gc_sofa_onset(s, (int)(i / m->receivers), (int)(i % m->receivers), &onset, error);
        if (status)
            return status;
        first = fmin(first, onset);
        last = fmax(last, onset);
        shortest = fmin(shortest, onset + s->delay[i]);
        longest = fmax(longest, onset + s->delay[i]);
    }
    gc_path_distances(m->path, &least, &most);
    if (m->config.doppler) {
        shortest += least / m->speed * m->rate;
        longest += most / m->speed * m->rate;
    }
    m->onset = (int64_t)ceil(last);
    m->taps = s->responses->frames + m->onset - (int64_t)floor(first) + (int64_t)2 * GC_HALF_SINC;
    const int64_t late = m->onset + GC_HALF_SINC + GC_DELAY_REACH + m->lead;
    m->base = gc_min((int64_t)floor(shortest), late);
    m->span = (int64_t)ceil(longest) - m->base;
    m->past = m->span + (int64_t)2 * GC_DELAY_REACH + 1;
    m->skip = late - m->base;
    m->tail = m->span + (int64_t)2 * GC_DELAY_REACH + m->taps - 1 - m->skip;
    return GPUCONV_OK;
}

/* Makes the spectra of a decoder of ambisonics, which does not turn. Returns TOPOLOGY, MEMORY, CANCELLED. */
static gpuconv_status take_decoder(gpuconv_motion *m, const gpuconv_ir *ir, gpuconv_error *error) {
    m->taps = ir->frames;
    m->skip = ir->lead;
    m->tail = m->taps - 1 - m->skip;
    gpuconv_status status = gc_motion_allocate(m, error);
    for (int c = 0; c < m->channels && !status; c++) {
        m->spectrum[c] = gc_calloc(m->receivers, m->floats * (int64_t)sizeof **m->spectrum);
        if (!m->spectrum[c])
            return gc_fail_memory(error, "the moving sources");
        for (int r = 0; r < m->receivers; r++) {
            const float *taps = gc_ir_plane(ir, r * m->channels + c);
            gc_fft_forward_rows(m->fft, &taps, m->taps, (float)(2 / (double)m->points), m->spectrum[c] + r * m->floats);
        }
    }
    return status;
}

/* Makes the decoder of ambisonics. Returns ARGUMENT, TOPOLOGY, MEMORY, CANCELLED. */
static gpuconv_status decode(gpuconv_motion *m, gpuconv_error *error) {
    gc_decoder *decoder = NULL;
    gpuconv_ir *ir = NULL;
    if (m->set->speakers > 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: ambisonics are not decoded to the %d loudspeakers of a room",
                       m->set->name, m->set->speakers);
    gpuconv_status status = gc_decoder_new(m->set, gc_ambisonic_order(m->channels), m->config.decode,
                                           m->config.diffuse_eq, m->config.ambisonics, &decoder, error);
    if (!status)
        status = gc_decoder_turn(decoder, NULL, &ir, error);
    if (!status)
        status = take_decoder(m, ir, error);
    gc_decoder_free(decoder);
    gpuconv_ir_free(ir);
    return status;
}

/* Checks the values of a configuration, and reads it. Returns ARGUMENT, UNSUPPORTED. */
static gpuconv_status read_config(const gpuconv_motion_config *from, gpuconv_motion *m, gpuconv_error *error) {
    gpuconv_motion_config *c = &m->config;
    *c = gpuconv_motion_config_default();
    const gc_sized_struct own = {c, sizeof *c, GC_SIZE_UP_TO(gpuconv_motion_config, threads), "gpuconv_motion_config"};
    gpuconv_status status = from ? gc_sized_struct_read(&own, from, error) : GPUCONV_OK;
    if (!status)
        status = gc_setting_check(GC_SETTING_INTERVAL, c->interval, error);
    if (!status && (c->threads < 0 || c->threads > 1024))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "threads are 1 to 1024, or 0, not %d", c->threads);
    if (!status && (c->decode < GPUCONV_DECODE_AUTO || c->decode > GPUCONV_DECODE_MAGLS))
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown decoder %d", (int)c->decode);
    if (!status && (unsigned)c->backend > GPUCONV_BACKEND_CUDA)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no such backend: %d", (int)c->backend);
    if (!status && c->device < -1)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a device number is 0 or more, or -1, not %d", c->device);
    return status || !m->set ? status : gc_sofa_choose(m->set, &c->interpolate, error);
}

/* Chooses the GPU where the configuration asks for it. Returns UNSUPPORTED. */
static gpuconv_status choose_backend(gpuconv_motion *m, gpuconv_error *error) {
    if (m->config.backend != GPUCONV_BACKEND_CUDA || m->path->ambisonic)
        return GPUCONV_OK;
    m->backend = gc_backend_find(GPUCONV_BACKEND_CUDA);
    return m->backend ? GPUCONV_OK : gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, error);
}

/* Writes the sentence that gpuconv_motion_plan returns. */
static void describe(gpuconv_motion *m) {
    const size_t used =
        (size_t)gc_format(m->plan, sizeof m->plan, "%d channel%s to %d, every %lld frames, %lld points, ", m->channels,
                          m->channels == 1 ? "" : "s", m->receivers, (long long)m->hop, (long long)m->points);
    if (used >= sizeof m->plan)
        return;
    if (m->backend)
        (void)gc_format(m->plan + used, sizeof m->plan - used, "on the GPU with %.2f GB",
                        (double)m->backend->motion->bytes(m->gpu) * 1e-9);
    else
        (void)gc_format(m->plan + used, sizeof m->plan - used, "on %d thread%s of the CPU", gc_pool_threads(m->pool),
                        gc_pool_threads(m->pool) == 1 ? "" : "s");
}

/* Takes what a set has. Returns ARGUMENT. */
static gpuconv_status open_set(gpuconv_motion *m, gpuconv_error *error) {
    if (m->path->metres)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a path in metres is for gpuconv_motion_new_in_room; make one of directions");
    m->receivers = m->set->receivers;
    m->rate = m->set->responses->rate;
    m->lead = m->set->responses->lead;
    m->each = 1;
    m->speed = speed_of_sound;
    return GPUCONV_OK;
}

/* Fills in the rest of a new object. Returns the errors of gpuconv_motion_new. */
static gpuconv_status set_up(gpuconv_motion *m, gpuconv_error *error) {
    gpuconv_status status;
    m->channels = m->path->channels;
    m->kept = m->room ? 3 : 1;
    m->groups = (int)gc_divide_up(m->channels, GC_MOTION_GROUP);
    m->responses = m->path->ambisonic || m->room ? m->channels : m->set->measurements;
    m->hop = gc_max(1, llrint(m->config.interval * m->rate));
    m->hops = gc_max(1, CHUNK / m->groups);
    m->pool = gc_pool_new(m->config.threads ? m->config.threads : gc_processor_count());
    if (!m->pool)
        return gc_fail_memory(error, "the moving sources");
    status = m->room ? gc_motion_room_measure(m, error) : m->path->ambisonic ? decode(m, error) : measure(m, error);
    if (!status && !m->path->ambisonic)
        status = gc_motion_allocate(m, error);
    if (!status && m->room)
        status = gc_motion_room_begin(m, error);
    if (!status)
        describe(m);
    return status;
}

/* Hands sources over, or frees them after a failure. Returns the status. */
static gpuconv_status finish(gpuconv_status status, gpuconv_motion *m, gpuconv_motion **motion) {
    if (status)
        gc_motion_free(m);
    else
        *motion = m;
    return status;
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
    if (!status)
        status = choose_backend(m, error);
    if (!status)
        status = open_set(m, error);
    return finish(status ? status : set_up(m, error), m, motion);
}

gpuconv_status gpuconv_motion_new_in_room(const gpuconv_rooms_job *job, const gpuconv_path *path,
                                          const gpuconv_path *receiver_path, const gpuconv_motion_config *config,
                                          gpuconv_motion **motion, gpuconv_error *error) {
    if (!gc_begin(motion, job, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_motion *m = gc_calloc(1, sizeof *m);
    if (!m)
        return gc_fail_memory(error, "the moving sources");
    m->path = path;
    gpuconv_status status = read_config(config, m, error);
    if (!status)
        status = gc_motion_room_open(m, job, receiver_path, error);
    return finish(status ? status : set_up(m, error), m, motion);
}

void gc_motion_free(gpuconv_motion *m) {
    gc_motion_close_gpu(m);
    gc_motion_room_free(m->room);
    for (int i = 0; i < m->responses && m->spectrum; i++)
        free(m->spectrum[i]);
    gc_pool_free(m->pool);
    gc_fft_free(m->fft);
    gc_delay_line_free(m->line);
    free(m->spectrum);
    free(m->energy);
    free(m->blend);
    free(m->placed);
    free(m->delay);
    free(m->slot);
    free(m->turn);
    free(m->mixture);
    free(m->backend ? NULL : m->input);
    free(m->scratch);
    free(m->sums);
    free(m->output);
    free(m->ready);
    free(m);
}

const char *gpuconv_motion_plan(const gpuconv_motion *m) {
    return m ? m->plan : "";
}

int gpuconv_motion_receivers(const gpuconv_motion *m) {
    return m ? m->receivers : 0;
}

int64_t gpuconv_motion_tail(const gpuconv_motion *m) {
    return m ? m->tail : 0;
}

/* Makes room for the frames of a chunk behind those that are ready, once for all if these are fetched in time. Returns
 * MEMORY. */
static gpuconv_status make_room(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t receivers = m->receivers, kept = m->end - m->begin, room = 2 * (kept + gc_motion_chunk(m));
    if (m->end + gc_motion_chunk(m) <= m->capacity)
        return GPUCONV_OK;
    float *larger = gc_calloc(receivers, room * (int64_t)sizeof *larger);
    if (!larger)
        return gc_fail_memory(error, "the moving sources");
    for (int64_t r = 0; r < receivers && m->ready; r++)
        memcpy(larger + r * room, m->ready + r * m->capacity + m->begin, (size_t)kept * sizeof *larger);
    free(m->ready);
    m->ready = larger;
    m->capacity = room;
    m->begin = 0;
    m->end = kept;
    return GPUCONV_OK;
}

/* Moves the frames of the chunk to those that are ready, but for those before time zero and behind the end. */
static void hand_over(gpuconv_motion *m) {
    const int64_t chunk = gc_motion_chunk(m), first = m->chunk * chunk - m->skip;
    const int64_t begin = gc_min(chunk, gc_max(0, -first));
    const int64_t whole = m->ended ? m->fed + m->tail : first + chunk;
    const int64_t end = gc_max(begin, gc_min(chunk, whole - first));
    for (int r = 0; r < m->receivers; r++) {
        float *from = m->output + r * (chunk + m->taps);
        memcpy(m->ready + r * m->capacity + m->end, from + begin, (size_t)(end - begin) * sizeof *from);
        memmove(from, from + chunk, (size_t)m->taps * sizeof *from);
        memset(from + m->taps, 0, (size_t)chunk * sizeof *from);
    }
    m->end += end - begin;
    m->finished += end - begin;
}

/* Makes room for the next chunk of the input. */
static void advance(gpuconv_motion *m) {
    const int64_t chunk = gc_motion_chunk(m), from = m->place + chunk;
    m->place = m->before + from + chunk <= m->width ? from : 0;
    for (int c = 0; c < m->channels && m->place == 0 && m->before; c++)
        memmove(m->input + c * m->width, m->input + c * m->width + from, (size_t)m->before * sizeof *m->input);
    m->filled = 0;
    m->chunk++;
}

/* Computes the chunk that is filled, and begins the next. Returns MEMORY, CANCELLED. */
static gpuconv_status run_chunk(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t missing = gc_motion_chunk(m) - m->filled;
    for (int c = 0; c < m->channels && missing; c++)
        memset(gc_motion_input(m, c) + m->filled, 0, (size_t)missing * sizeof *m->input);
    gpuconv_status status = make_room(m, error);
    if (!status)
        status = gc_motion_render(m, error);
    if (status)
        return status;
    hand_over(m);
    advance(m);
    return GPUCONV_OK;
}

gpuconv_status gpuconv_motion_feed(gpuconv_motion *m, const float *const *in, int64_t frames, gpuconv_error *error) {
    if (!m || (frames > 0 && !in))
        return gc_fail_null(error, __func__);
    if (frames < 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a block has 0 frames or more, not %lld", (long long)frames);
    if (m->ended)
        return gc_fail(error, GPUCONV_ERROR_STATE, "the input of the moving sources has ended");
    const int64_t chunk = gc_motion_chunk(m);
    gpuconv_status status = GPUCONV_OK;
    m->ended = frames == 0;
    for (int64_t at = 0; at < frames && !status;) {
        const int64_t part = gc_min(frames - at, chunk - m->filled);
        for (int c = 0; c < m->channels; c++)
            if (in[c] + at != gc_motion_input(m, c) + m->filled) /* a sound device has written it there */
                memcpy(gc_motion_input(m, c) + m->filled, in[c] + at, (size_t)part * sizeof **in);
        m->filled += part;
        m->fed += part;
        at += part;
        if (m->filled == chunk)
            status = run_chunk(m, error);
    }
    while (m->ended && !status && m->finished < m->fed + m->tail)
        status = run_chunk(m, error);
    return status;
}

gpuconv_status gpuconv_motion_fetch(gpuconv_motion *m, float *const *out, int64_t capacity, int64_t *frames) {
    if (!m || !out || !frames)
        return GPUCONV_ERROR_ARGUMENT;
    *frames = gc_max(0, gc_min(capacity, m->end - m->begin));
    for (int r = 0; r < m->receivers && *frames; r++)
        memcpy(out[r], m->ready + r * m->capacity + m->begin, (size_t)*frames * sizeof **out);
    m->begin += *frames;
    if (m->begin == m->end)
        m->begin = m->end = 0;
    return GPUCONV_OK;
}
