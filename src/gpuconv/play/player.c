/*
 * The player: its device callback, its sources in space, its construction, threads and control functions. The reader's
 * thread prefetches the file, the recorder's writes what was played.
 *
 * A player in space has moving sources, or a turning head, whose orientation over time comes from a file or as the
 * latest one by OSC. When the head has turned, the responses of all channels are made again and crossfaded.
 */
#include "player_state.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/read_files.h"
#include "libgpuconv/space/head.h"
#include "libgpuconv/space/path.h"
#include "osc/osc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- The device's callback --------------------------------------------------------------------------------------- */

/* Fetches the next n frames of the file as planes. Frames that are not prefetched, or are past the end, are silence. */
static void fetch_file(gc_player *p, float *const *planes, float *interleaved, int64_t n) {
    if (atomic_load_explicit(&p->flush, memory_order_acquire)) {
        gc_frame_ring_discard(&p->prefetched);
        atomic_store_explicit(&p->flush, false, memory_order_release);
    }
    bool ended = atomic_load_explicit(&p->ended, memory_order_acquire);
    int64_t got = atomic_load(&p->paused) ? 0 : gc_min(n, gc_frame_ring_available(&p->prefetched));
    gc_frame_ring_read(&p->prefetched, interleaved, got);
    for (int c = 0; c < p->inputs; c++)
        for (int64_t i = 0; i < n; i++)
            planes[c][i] = i < got ? interleaved[i * p->inputs + c] : 0.0f;
    const int64_t position = atomic_fetch_add_explicit(&p->position, got, memory_order_relaxed);
    if (p->motion && got > 0)
        gpuconv_motion_seek(p->motion, position);
    if (got == n || atomic_load(&p->paused))
        return;
    if (!ended) {
        if (!atomic_load(&p->starting))
            atomic_fetch_add_explicit(&p->underruns, 1, memory_order_relaxed);
        return;
    }
    /* Play the tail, then silence for the device's latency: some sound servers discard buffered output on close. */
    if (got > 0 || p->tail_frames_left < 0)
        p->tail_frames_left = atomic_load(&p->tail) + p->drain_frames;
    p->tail_frames_left -= n - got;
    if (p->tail_frames_left <= 0)
        atomic_store(&p->finished, true);
}

static void update_peak(gc_player *p, int channel, float peak) {
    uint32_t bits, before = atomic_load_explicit(&p->peak[channel], memory_order_relaxed);
    memcpy(&bits, &peak, sizeof bits); /* non-negative floats have the same order as their bit patterns */
    if (bits > before)
        atomic_store_explicit(&p->peak[channel], bits, memory_order_relaxed);
    if (peak > 1)
        atomic_store_explicit(&p->clipped[channel], true, memory_order_relaxed);
}

/* Keeps n input frames and reads them again, delayed by the response's lead, as gpuconv_ir_mix delays the dry signal. A
 * changed delay is crossfaded within the chunk. */
static void delay_dry(gc_player *p, const float *const *in, float *const *out, int64_t n) {
    const int64_t mask = GC_PLAYER_HISTORY - 1, most = GC_PLAYER_HISTORY - GC_PLAYER_CHUNK;
    const int64_t from = p->current_lead, to = gc_min(atomic_load(&p->lead), most);
    for (int c = 0; c < p->inputs; c++) {
        float *history = p->history + (int64_t)c * GC_PLAYER_HISTORY;
        for (int64_t i = 0; i < n; i++)
            history[(p->history_at + i) & mask] = in[c][i];
        for (int64_t i = 0; i < n; i++) {
            float old = history[(p->history_at + i - from) & mask], new = history[(p->history_at + i - to) & mask];
            out[c][i] = old + (new - old) * (float)(i + 1) / (float)n;
        }
    }
    p->history_at = (p->history_at + n) & mask;
    p->current_lead = to;
}

/* Mixes wet and dry signal into `out`, with a linear ramp from the current factors to the requested ones, and updates
 * the peak meters. gpuconv_ir_mix cannot do this: it puts fixed levels into the taps, and a listener changes these
 * levels while the response plays. As there, input k goes to output k, and a single input to every output. */
static void mix(gc_player *p, const float *const *dry, const float *const *wet, float *const *out, int64_t n) {
    double gain = atomic_load(&p->gain), wet_target = gain * atomic_load(&p->wet),
           dry_target = gain * atomic_load(&p->dry);
    if (atomic_load(&p->bypassed)) {
        wet_target = 0;
        dry_target = gain;
    }
    for (int c = 0; c < p->outputs; c++) {
        const float *dry_channel = p->inputs == 1 ? dry[0] : c < p->inputs ? dry[c] : NULL;
        float peak = 0;
        for (int64_t i = 0; i < n; i++) {
            double ramp = (double)(i + 1) / (double)n;
            double w = p->current_wet + (wet_target - p->current_wet) * ramp;
            double d = p->current_dry + (dry_target - p->current_dry) * ramp;
            float y = (float)((w != 0 ? w * (double)wet[c][i] : 0) + (dry_channel ? d * (double)dry_channel[i] : 0));
            out[c][i] = y;
            float magnitude = fabsf(y);
            peak = magnitude > peak ? magnitude : peak;
        }
        update_peak(p, c, peak);
    }
    p->current_wet = wet_target;
    p->current_dry = dry_target;
}

/* Copies n frames of a live input; NaN and infinite samples become silence. */
static void copy_live(gc_player *p, const float *const *in, int64_t at, float *const *planes, int64_t n) {
    int64_t replaced = 0, first;
    for (int c = 0; c < p->inputs; c++) {
        memcpy(planes[c], in[c] + at, (size_t)n * sizeof(float));
        replaced += gc_zero_nonfinite(planes[c], n, &first);
    }
    if (replaced)
        atomic_fetch_add_explicit(&p->nonfinite, replaced, memory_order_relaxed);
}

/* Counts n frames. Those past the limit become silence, which is played for the device's latency, and then playing
 * ends. Returns the number of frames before the limit. */
static int64_t count_frames(gc_player *p, float *const *out, int64_t n) {
    const int64_t before = atomic_load_explicit(&p->frames, memory_order_relaxed), after = before + n;
    const int64_t heard = gc_min(n, gc_max(0, p->limit - before));
    for (int c = 0; c < p->outputs; c++)
        memset(out[c] + heard, 0, (size_t)(n - heard) * sizeof(float));
    if (after >= p->limit && after - p->limit >= p->drain_frames)
        atomic_store(&p->finished, true);
    atomic_store_explicit(&p->frames, after, memory_order_relaxed);
    return heard;
}

/* Hands a chunk to the recorder thread; drops it if the ring is full, because the callback must not wait. */
static void record(gc_player *p, float *const *out, float *interleaved, int64_t n) {
    if (!atomic_load_explicit(&p->recording, memory_order_acquire) || gc_frame_ring_space(&p->recorded) < n)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < p->outputs; c++)
            interleaved[i * p->outputs + c] = out[c][i];
    gc_frame_ring_write(&p->recorded, interleaved, n);
}

static void update_load(gc_player *p, double seconds, int64_t frames) {
    double available = (double)frames / p->rate;
    uint64_t load = (uint64_t)(1e6 * seconds / available);
    atomic_fetch_add_explicit(&p->busy_ns, (uint64_t)(seconds * 1e9), memory_order_relaxed);
    atomic_fetch_add_explicit(&p->available_ns, (uint64_t)(available * 1e9), memory_order_relaxed);
    if (load > atomic_load_explicit(&p->worst_load, memory_order_relaxed))
        atomic_store_explicit(&p->worst_load, load, memory_order_relaxed);
}

/* The device's callback; `context` is the player. */
static void process_block(void *context, const float *const *in, float *const *out, int64_t frames) {
    enum { CHUNK = GC_PLAYER_CHUNK };
    gc_player *p = context;
    double start = gc_now();
    float *input[GC_PLAYER_CHANNELS], *dry[GC_PLAYER_CHANNELS] = {NULL};
    float *wet[GC_PLAYER_CHANNELS] = {NULL}, *mixed[GC_PLAYER_CHANNELS] = {NULL};
    float *interleaved = p->scratch + (int64_t)(2 * p->inputs + p->outputs) * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        input[c] = p->scratch + (int64_t)c * CHUNK;
    for (int c = 0; c < p->inputs; c++)
        dry[c] = p->scratch + (int64_t)(p->inputs + c) * CHUNK;
    for (int c = 0; c < p->outputs; c++)
        wet[c] = p->scratch + (int64_t)(2 * p->inputs + c) * CHUNK;
    for (int64_t at = 0; at < frames; at += CHUNK) {
        int64_t n = gc_min(CHUNK, frames - at);
        for (int c = 0; c < p->outputs; c++)
            mixed[c] = out[c] + at;
        if (p->reader)
            fetch_file(p, input, interleaved, n);
        else
            copy_live(p, in, at, input, n);
        if (p->motion)
            gpuconv_motion_process(p->motion, (const float *const *)input, wet, n);
        else
            gpuconv_realtime_process(p->realtime, (const float *const *)input, wet, n);
        delay_dry(p, (const float *const *)input, dry, n);
        mix(p, (const float *const *)dry, (const float *const *)wet, mixed, n);
        record(p, mixed, interleaved, count_frames(p, mixed, n));
    }
    update_load(p, gc_now() - start, frames);
}

/* ---- Orientations ------------------------------------------------------------------------------------------------ */

struct gc_follow {
    gpuconv_head *head; /* of a file; NULL: OSC */
    gc_osc *osc;        /* NULL: a file */
    double latest[3];   /* yaw, pitch, roll of OSC */
};

void gc_follow_free(gc_follow *f) {
    if (!f)
        return;
    gc_osc_close(f->osc);
    gpuconv_head_free(f->head);
    free(f);
}

gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error) {
    *follow = NULL;
    gc_follow *f = gc_calloc(1, sizeof *f);
    if (!f)
        return gc_fail_memory(error, "following a head");
    const bool osc = strcmp(source, "osc") == 0 || strncmp(source, "osc:", 4) == 0;
    gpuconv_status status =
        osc ? gc_osc_open(source[3] ? source + 4 : "9000", &f->osc, error) : gpuconv_head_load(source, &f->head, error);
    if (status) {
        gc_follow_free(f);
        return status;
    }
    *follow = f;
    return GPUCONV_OK;
}

void gc_follow_at(gc_follow *f, double seconds, double angle[3]) {
    if (f->osc) {
        gc_osc_take_angles(f->osc, f->latest);
        memcpy(angle, f->latest, sizeof f->latest);
        return;
    }
    gc_head_at(f->head, seconds, angle);
    for (int k = 0; k < 3; k++)
        angle[k] = remainder(angle[k], 360);
}

/* ---- The turning head -------------------------------------------------------------------------------------------- */

static const double fade = 0.02; /* seconds */

/* Returns how a response is prepared; a SOFA file has directions. */
static gpuconv_preparation preparation_of(const gc_player_config *c, const char *response) {
    gpuconv_preparation how = c->settings.preparation;
    how.size = sizeof how;
    how.wet = 0; /* the callback mixes */
    how.dry = -HUGE_VAL;
    if (!gc_is_sofa(response))
        how.direction = how.speakers = NULL;
    return how;
}

/* Makes the response of the set for the head's orientation at the device's rate. */
static gpuconv_status make_turned_response(const gc_player *p, gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_preparation how = preparation_of(&p->config, p->config.responses[0]);
    how.yaw = p->head[0];
    how.pitch = p->head[1];
    how.roll = p->head[2];
    const gc_rotation head = gc_rotation_of(how.yaw, how.pitch, how.roll);
    return p->decoder ? gc_decoder_turn(p->decoder, &head, ir, error)
                      : gc_spatial_make(p->sofa, &how, true, p->inputs, ir, error);
}

/* Opens the source of the head's orientation, if one is configured, and its set of responses, which is read once. */
static gpuconv_status open_follow(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    if (!c->follow)
        return GPUCONV_OK;
    if (gc_moves(&c->settings.job)) /* open_motion opens the rest */
        return gc_follow_open(c->follow, &p->follow, error);
    if (c->response_count != 1 || !gc_is_sofa(c->responses[0]))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a turning head needs one SOFA file", c->responses[0]);
    gpuconv_status status = gpuconv_sofa_open(c->responses[0], p->rate, &p->sofa, error);
    if (!status)
        status = gc_follow_open(c->follow, &p->follow, error);
    const int order = gc_spatial_is_ambisonic(c->settings.preparation.speakers) ? gc_ambisonic_order(p->inputs) : 0;
    if (!status && order) /* once: the fit does not depend on the head */
        status = gc_decoder_new(p->sofa, order, c->settings.preparation.decode, c->settings.preparation.diffuse_eq,
                                c->settings.preparation.ambisonics, &p->decoder, error);
    if (!status)
        gc_follow_at(p->follow, c->seek, p->head);
    return status;
}

gpuconv_status gc_player_follow(gc_player *p, gpuconv_error *error) {
    const double turn = 0.5; /* degrees that are too small to be heard */
    const double rate = p->follow_rate ? p->system->rate(p->sound) : 0;
    if (rate > 0 && rate != p->rate) {
        p->rate = rate;
        return gc_player_select_response(p, p->response, error);
    }
    if (!p->follow)
        return GPUCONV_OK;
    double to[3];
    gc_follow_at(p->follow, (double)atomic_load(&p->position) / p->rate, to);
    if (p->motion) {
        gpuconv_motion_turn(p->motion, to);
        return GPUCONV_OK;
    }
    if (fabs(remainder(to[0] - p->head[0], 360)) < turn && fabs(to[1] - p->head[1]) < turn &&
        fabs(to[2] - p->head[2]) < turn)
        return GPUCONV_OK;
    gpuconv_ir *ir;
    memcpy(p->head, to, sizeof to);
    gpuconv_status status = make_turned_response(p, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap(p->realtime, ir, fade, error);
    gpuconv_ir_free(ir);
    return status;
}

/* ---- Moving sources ---------------------------------------------------------------------------------------------- */

/* Returns what moves as a job. */
static gpuconv_job job_of(const gc_player_config *c) {
    gpuconv_job job = c->settings.job;
    job.response = c->responses[0];
    job.preparation = &c->settings.preparation;
    return job;
}

/* Checks that the configuration has what moving sources need. Returns ARGUMENT. */
static gpuconv_status check(const gc_player_config *c, const gpuconv_job *job, gpuconv_error *error) {
    if (c->response_count != 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a path and a head that turns need one SOFA file or room",
                       c->responses[0]);
    if (c->follow && job->head)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a head that is followed excludes one from a file");
    return gc_moving_check(job, error);
}

/* Opens moving sources, if they are configured, and their set of responses; sets the number of outputs. */
static gpuconv_status open_motion(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    const gpuconv_job job = job_of(c);
    gpuconv_config config = gpuconv_config_default();
    if (!gc_moves(&job))
        return GPUCONV_OK;
    gpuconv_status status = check(c, &job, error);
    config.threads = c->threads;
    config.backend = c->backend;
    config.device = c->device;
    if (!status)
        status = gc_moving_open(&p->moving, &job, &config, p->rate, p->inputs, error);
    if (!status)
        status = gpuconv_motion_start(p->moving.motion, c->block ? c->block : 1024, error);
    if (status)
        return status;
    p->motion = p->moving.motion;
    p->outputs = gpuconv_motion_receivers(p->motion);
    p->current_lead = gpuconv_motion_latency(p->motion);
    atomic_store(&p->lead, p->current_lead);
    atomic_store(&p->tail, gpuconv_motion_tail(p->motion) + p->current_lead);
    char path[64] = "", head[64] = "", where[64] = "in a simulated room";
    if (job.path)
        gc_track_describe(&p->moving.path->text, path);
    if (p->moving.head)
        gc_track_describe(&p->moving.head->text, head);
    if (p->moving.set)
        (void)snprintf(where, sizeof where, "%d directions", gpuconv_sofa_directions(p->moving.set));
    (void)snprintf(p->applied, sizeof p->applied, "%d channel%s %s%s%s%s, %s", p->inputs, p->inputs == 1 ? "" : "s",
                   job.path ? "along a path" : "in place", path, job.head ? " before a head that turns" : "", head,
                   where);
    return p->outputs <= GC_PLAYER_CHANNELS
               ? GPUCONV_OK
               : gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "cannot play %d channels; use up to %d", p->outputs,
                         GC_PLAYER_CHANNELS);
}

/* ---- Outputs of one channel -------------------------------------------------------------------------------------- */

/* Returns the channels of a file of audio, 2 for a SOFA file; 0: it is neither, such as a matrix, or cannot be read. */
static int count_channels(const char *path) {
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gc_reader *reader;
    if (gc_is_sofa(path))
        return 2;
    if (gc_reader_open(path, &wish, &reader, NULL))
        return 0;
    int channels = gc_reader_info(reader)->channels;
    gc_reader_free(reader);
    return channels;
}

/* Returns whether an input of one channel has responses of one output and of two in its list: the convolver crossfades
 * only between responses of the same shape. */
static bool is_widened(const gc_player_config *config, int inputs) {
    bool one = false, two = false;
    for (int i = 0; inputs == 1 && i < config->response_count; i++) {
        const int channels = count_channels(config->responses[i]);
        one = one || channels == 1;
        two = two || channels == 2 || (channels == 4 && config->settings.preparation.layout == GPUCONV_LAYOUT_STEREO);
    }
    return one && two;
}

/* Replaces a routed response of one input and one output by one that plays the same to two outputs; leaves any other as
 * it is. Fails with MEMORY. */
static gpuconv_status widen(gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_ir *from = *ir;
    if (from->inputs != 1 || from->outputs != 1 || from->routes != 1)
        return GPUCONV_OK;
    gpuconv_ir *created = gc_ir_blank(1, 2, 1, 2, from->frames, from->rate);
    if (!created || (from->history && !(created->history = strdup(from->history)))) {
        gpuconv_ir_free(created);
        return gc_fail_memory(error, "the response");
    }
    memcpy(created->taps, gc_ir_plane(from, from->route[0].plane), (size_t)from->frames * sizeof *created->taps);
    for (int o = 0; o < 2; o++)
        created->route[o] = (gc_route){0, o, 0};
    created->lead = from->lead;
    created->routed = true;
    gpuconv_ir_free(from);
    *ir = created;
    return GPUCONV_OK;
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

/* Frames per read, and the most frames that the resampler makes of them. */
enum { READ_STEP = 4096, CONVERTED_MAX = 2 * READ_STEP + 4096 };

/* Sleeps for 5 ms. */
static void sleep_briefly(void) {
    struct timespec t = {0, 5000000};
    nanosleep(&t, NULL);
}

/* Stores a thread's error and ends playback. */
static void fail_thread(gc_player *p, gpuconv_status status, const gpuconv_error *error) {
    if (!atomic_exchange(&p->thread_failed, true)) {
        p->err = status;
        p->error = *error;
    }
    atomic_store(&p->finished, true);
}

/* Continues at another frame, after the callback has discarded the prefetched frames. */
static gpuconv_status seek_file(gc_player *p, int64_t frame, gpuconv_error *error) {
    atomic_store(&p->flush, true);
    while (atomic_load(&p->flush) && !atomic_load(&p->quit))
        sleep_briefly();
    atomic_store(&p->ended, false);
    atomic_store(&p->position, frame);
    if (p->resampler)
        gc_resampler_clear(p->resampler);
    return gc_reader_seek(p->reader, (int64_t)((double)frame * (p->file_rate / p->rate)), error);
}

/* Resamples frames of the file to the device's rate and writes them into the ring. `block` NULL: the file has ended;
 * writes the resampler's last frames. */
static gpuconv_status prefetch(gc_player *p, const float *block, int64_t frames, float *converted,
                               gpuconv_error *error) {
    if (!p->resampler) {
        if (block)
            gc_frame_ring_write(&p->prefetched, block, frames);
        return GPUCONV_OK;
    }
    int64_t frames_out = gc_resampler_process(p->resampler, block, frames, converted, CONVERTED_MAX);
    if (frames_out < 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "resampling %s failed", p->config.input);
    gc_frame_ring_write(&p->prefetched, converted, frames_out);
    return GPUCONV_OK;
}

/* Reads up to `step` frames into the ring. At the end of the file starts again if the player loops, else sets `ended`.
 */
static gpuconv_status read_step(gc_player *p, float *block, int64_t step, float *converted, gpuconv_error *error) {
    int64_t got;
    gpuconv_status status = gc_reader_read_floats(p->reader, block, step, &got, error);
    if (!status && got > 0)
        status = prefetch(p, block, got, converted, error);
    if (status || got == step)
        return status;
    if (p->config.loop)
        return gc_reader_seek(p->reader, 0, error);
    status = prefetch(p, NULL, 0, converted, error);
    atomic_store_explicit(&p->ended, true, memory_order_release);
    return status;
}

/* Fills the ring of prefetched frames from the file. */
static void *read_thread(void *player) {
    gc_player *p = player;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    /* Chosen so that the resampler makes at most about READ_STEP frames of one step. */
    int64_t step = p->resampler ? gc_max(16, (int64_t)(READ_STEP * fmin(1, p->file_rate / p->rate))) : READ_STEP;
    float *block = gc_calloc((int64_t)READ_STEP * p->inputs, sizeof *block);
    float *converted = gc_calloc((int64_t)CONVERTED_MAX * p->inputs, sizeof *converted);
    if (!block || !converted)
        status = gc_fail_memory(&error, "reading ahead");
    while (!status && !atomic_load(&p->quit)) {
        int64_t frame = atomic_exchange(&p->seek, -1);
        if (frame >= 0) {
            status = seek_file(p, frame, &error);
        } else if (atomic_load(&p->ended) || gc_frame_ring_space(&p->prefetched) < CONVERTED_MAX) {
            atomic_store(&p->starting, false);
            sleep_briefly();
        } else {
            status = read_step(p, block, step, converted, &error);
        }
    }
    if (status && !atomic_load(&p->quit)) /* a read that was cancelled by `quit` is not an error */
        fail_thread(p, status, &error);
    free(block);
    free(converted);
    return NULL;
}

/* Writes recorded frames to a file. */
static void *record_thread(void *player) {
    enum { STEP = 4096 };
    gc_player *p = player;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    float *block = gc_calloc((int64_t)STEP * p->outputs, sizeof *block);
    if (!block)
        status = gc_fail_memory(&error, "recording");
    while (!status) {
        const bool recording = atomic_load(&p->recording); /* before the look at the ring */
        int64_t n = gc_min(STEP, gc_frame_ring_available(&p->recorded));
        if (n == 0 && !recording)
            break;
        if (n == 0) {
            sleep_briefly();
            continue;
        }
        gc_frame_ring_read(&p->recorded, block, n);
        status = gc_writer_write(p->writer, block, n, &error);
    }
    if (status) {
        fail_thread(p, status, &error);
        gc_writer_forgive(p->writer); /* a full disk: what it took is kept */
    }
    free(block);
    return NULL;
}

enum { PREFETCH_FRAMES = 1 << 16, RECORD_FRAMES = 1 << 18 };

/* ---- Construction ------------------------------------------------------------------------------------------------ */

static gpuconv_status load_response(const gc_player *p, int response, gpuconv_ir **ir, gpuconv_error *error) {
    const gpuconv_preparation plain = preparation_of(&p->config, p->config.responses[response]);
    if (p->sofa)
        return make_turned_response(p, ir, error);
    gpuconv_status status = gpuconv_ir_prepare(p->config.responses[response], &plain, p->inputs, p->rate, ir, error);
    return status || !p->widened ? status : widen(ir, error);
}

/* Keeps what was done to the response, for the view. */
static void note_applied(gc_player *p, const gpuconv_ir *ir) {
    (void)snprintf(p->applied, sizeof p->applied, "%s", gpuconv_ir_history(ir));
}

/* Opens the input file, if there is one, and its resampler; sets the rate and the number of inputs. */
static gpuconv_status open_input(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    p->duration = -1;
    p->inputs = c->channels > 0 ? c->channels : c->sink ? 2 : 1;
    p->rate = c->rate > 0 ? c->rate : 48000;
    if (c->input) {
        const gc_input_options wish = {.cancel = c->cancel};
        gpuconv_status status = gc_reader_open(c->input, &wish, &p->reader, error);
        if (status)
            return status;
        gc_reader_set_cancel(p->reader, &p->reader_cancel);
        p->inputs = gc_reader_info(p->reader)->channels;
        p->duration = gc_reader_info(p->reader)->frames;
        p->file_rate = gc_reader_info(p->reader)->rate;
        p->rate = c->rate > 0 ? c->rate : p->file_rate;
        if (p->rate != p->file_rate) {
            p->resampler = gc_resampler_new(p->file_rate, p->rate, p->inputs);
            if (!p->resampler)
                return gc_fail_memory(error, "resampling the file");
            p->duration = p->duration < 0 ? -1 : llrint((double)p->duration * p->rate / p->file_rate);
        }
    }
    if (p->inputs < 1 || p->inputs > GC_PLAYER_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "cannot play %d channels; use 1 to %d", p->inputs,
                       GC_PLAYER_CHANNELS);
    p->widened = is_widened(c, p->inputs);
    return GPUCONV_OK;
}

/* Prepares the first response and creates the real-time convolver, unless sources move; sets the number of outputs. */
static gpuconv_status open_convolver(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    gpuconv_ir *ir = NULL;
    if (p->motion)
        return GPUCONV_OK;
    gpuconv_status status = load_response(p, 0, &ir, error);
    if (status)
        return status;
    p->outputs = gpuconv_ir_outputs(ir);
    note_applied(p, ir);
    atomic_store(&p->tail, gpuconv_ir_frames(ir));
    atomic_store(&p->lead, gpuconv_ir_lead(ir));
    p->current_lead = gpuconv_ir_lead(ir);
    gpuconv_realtime_config config = {.size = sizeof config,
                                      .rate = p->rate,
                                      .block = c->block ? c->block : 1024,
                                      .threads = c->threads,
                                      .backend = c->backend,
                                      .device = c->device,
                                      .latency = c->latency};
    if (p->outputs > GC_PLAYER_CHANNELS)
        status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "cannot play %d channels; use up to %d", p->outputs,
                         GC_PLAYER_CHANNELS);
    else
        status = gpuconv_realtime_new(ir, &config, &p->realtime, error);
    gpuconv_ir_free(ir);
    return status;
}

static gpuconv_status allocate_buffers(gc_player *p, gpuconv_error *error) {
    int widest = p->inputs > p->outputs ? p->inputs : p->outputs;
    p->scratch = gc_calloc((int64_t)(2 * p->inputs + p->outputs + widest) * GC_PLAYER_CHUNK, sizeof *p->scratch);
    p->history = gc_calloc((int64_t)p->inputs * GC_PLAYER_HISTORY, sizeof *p->history);
    if (!p->scratch || !p->history || (p->reader && !gc_frame_ring_init(&p->prefetched, p->inputs, PREFETCH_FRAMES)))
        return gc_fail_memory(error, "the player");
    return GPUCONV_OK;
}

static gpuconv_status open_recording(gc_player *p, gpuconv_error *error) {
    gc_audio_info info = gc_audio_info_float(p->outputs, (int)p->rate, -1);
    if (!gc_frame_ring_init(&p->recorded, p->outputs, RECORD_FRAMES))
        return gc_fail_memory(error, "the recording");
    const gc_player_config *c = &p->config;
    const gc_output_options wish = {.cancel = c->cancel};
    const char *const more[] = {c->input,
                                c->settings.preparation.speakers,
                                c->follow,
                                c->settings.job.path,
                                c->settings.job.head,
                                c->settings.job.receiver_path};
    gpuconv_status status = gc_ir_keep_files(c->record, c->responses, c->response_count, error);
    if (!status)
        status = gc_ir_keep_files(c->record, more, 6, error);
    if (!status)
        status = gc_writer_new(p->config.record, &wish, &info, p->outputs, -1, &p->writer, error);
    if (!status && gc_writer_pcm(p->writer).container != GC_F32)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT,
                         "%s: this format cannot hold 32-bit floats; record to a format that can, such as WAV",
                         p->config.record);
    return status;
}

static gpuconv_status open_device(gc_player *p, gpuconv_error *error) {
    const gc_player_config *c = &p->config;
    p->follow_rate = c->sink && !c->rate && !c->record && !c->seconds && !p->follow && !p->motion;
    gc_sound_config device = {.output = c->output_device,
                              .input = c->input_device,
                              .sink = c->sink,
                              .follow_rate = p->follow_rate,
                              .inputs = c->input ? 0 : p->inputs,
                              .outputs = p->outputs,
                              .rate = p->rate,
                              .block = c->block,
                              .callback = process_block,
                              .context = p};
    gpuconv_status status = p->system->open(&device, &p->sound, error);
    if (!status)
        p->drain_frames = (int64_t)((p->system->latency(p->sound) + 0.1) * p->rate);
    return status;
}

static gpuconv_status open_all(gc_player *p, gpuconv_error *error) {
    const gc_sound_choice sound = p->config.sink ? GC_SOUND_PIPEWIRE : p->config.sound;
    gpuconv_status status = gc_sound_load(sound, &p->system, error);
    if (!status)
        status = open_input(p, error);
    if (!status)
        status = open_follow(p, error);
    if (!status)
        status = open_motion(p, error);
    if (!status)
        status = open_convolver(p, error);
    if (!status)
        status = allocate_buffers(p, error);
    if (!status && p->config.record)
        status = open_recording(p, error);
    return status ? status : open_device(p, error);
}

gpuconv_status gc_player_new(const gc_player_config *config, gc_player **player, gpuconv_error *error) {
    *player = NULL;
    gc_player *p = gc_calloc(1, sizeof *p);
    if (!p)
        return gc_fail_memory(error, "the player");
    p->config = *config;
    p->tail_frames_left = -1;
    p->limit = INT64_MAX;
    atomic_store(&p->seek, config->seek > 0 ? 0 : -1);
    gc_player_set_levels(p, config->settings.job.gain, config->settings.preparation.wet,
                         config->settings.preparation.dry);
    gpuconv_status status = open_all(p, error);
    if (status) {
        gc_player_free(p);
        return status;
    }
    if (config->seek > 0)
        gc_player_seek(p, config->seek);
    if (config->seconds > 0)
        p->limit = llrint(config->seconds * p->rate);
    p->current_wet = atomic_load(&p->gain) * atomic_load(&p->wet);
    p->current_dry = atomic_load(&p->gain) * atomic_load(&p->dry);
    atomic_store(&p->starting, true);
    *player = p;
    return GPUCONV_OK;
}

/* ---- Control ----------------------------------------------------------------------------------------------------- */

/* Blocks until the ring is full or the file ends. */
static gpuconv_status wait_for_prefetch(gc_player *p, gpuconv_error *error) {
    const volatile int *cancel = p->config.cancel;
    while (atomic_load(&p->starting) && !atomic_load(&p->ended) && !atomic_load(&p->finished)) {
        if (gc_flag_is_raised(cancel))
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted", p->config.input);
        sleep_briefly();
    }
    return GPUCONV_OK;
}

gpuconv_status gc_player_start(gc_player *p, gpuconv_error *error) {
    bool seeks = atomic_load(&p->seek) >= 0; /* before the reader thread takes the request */
    if (p->writer) {
        atomic_store(&p->recording, true);
        if (pthread_create(&p->recorder_thread, NULL, record_thread, p) != 0)
            return gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the recorder thread");
        p->recorder_running = true;
    }
    if (p->reader) {
        if (pthread_create(&p->reader_thread, NULL, read_thread, p) != 0)
            return gc_fail(error, GPUCONV_ERROR_MEMORY, "cannot start the reader thread");
        p->reader_running = true;
        if (!seeks) { /* a seek waits for the callback, which does not run before the device starts */
            gpuconv_status status = wait_for_prefetch(p, error);
            if (status)
                return status;
        }
    }
    return p->system->start(p->sound, error);
}

void gc_player_get_view(gc_player *p, gc_player_view *v) {
    const int64_t position = atomic_load(&p->position); /* counts on when the file starts again */
    const bool wraps = p->config.loop && p->duration > 0;
    *v = (gc_player_view){.position = (double)(wraps ? position % p->duration : position) / p->rate,
                          .duration = p->duration < 0 ? -1 : (double)p->duration / p->rate,
                          .rate = p->rate,
                          .outputs = p->outputs,
                          .response = atomic_load(&p->response),
                          .applied = p->applied,
                          .late_blocks = p->motion ? gc_divide_up(gpuconv_motion_late(p->motion), GC_PLAYER_CHUNK)
                                                   : gpuconv_realtime_late_blocks(p->realtime),
                          .xruns = p->system->xruns(p->sound),
                          .underruns = atomic_load(&p->underruns),
                          .frames = atomic_load(&p->frames),
                          .paused = atomic_load(&p->paused),
                          .bypassed = atomic_load(&p->bypassed),
                          .finished = atomic_load(&p->finished),
                          .device_active = p->system->is_active(p->sound),
                          .gain = 20 * log10(atomic_load(&p->gain)),
                          .wet = 20 * log10(atomic_load(&p->wet)),
                          .dry = 20 * log10(atomic_load(&p->dry)),
                          .system = p->system->name,
                          .plan = p->motion ? gpuconv_motion_plan(p->motion) : gpuconv_realtime_plan(p->realtime),
                          .gpu = p->realtime && gpuconv_realtime_backend(p->realtime) == GPUCONV_BACKEND_CUDA,
                          .latency =
                              p->motion ? gpuconv_motion_latency(p->motion) : gpuconv_realtime_latency(p->realtime)};
    uint64_t available = atomic_load(&p->available_ns);
    v->mean_load = available ? (double)atomic_load(&p->busy_ns) / (double)available : 0;
    v->worst_load = (double)atomic_load(&p->worst_load) * 1e-6;
    for (int c = 0; c < p->outputs; c++) {
        uint32_t bits = atomic_exchange(&p->peak[c], 0);
        memcpy(&v->peak[c], &bits, sizeof bits);
        v->clipped[c] = atomic_load(&p->clipped[c]);
    }
}

void gc_player_pause(gc_player *p, bool pause) {
    atomic_store(&p->paused, pause);
}

void gc_player_bypass(gc_player *p, bool bypass) {
    atomic_store(&p->bypassed, bypass);
}

void gc_player_set_levels(gc_player *p, double gain, double wet, double dry) {
    atomic_store(&p->gain, gc_level_factor(gain));
    atomic_store(&p->wet, gc_level_factor(wet));
    atomic_store(&p->dry, gc_level_factor(dry));
}

void gc_player_seek(gc_player *p, double seconds) {
    int64_t frame = (int64_t)(seconds > 0 ? seconds * p->rate : 0);
    if (p->reader)
        atomic_store(&p->seek, p->duration >= 0 ? gc_min(frame, p->duration) : frame);
}

gpuconv_status gc_player_select_response(gc_player *p, int response, gpuconv_error *error) {
    gpuconv_ir *ir;
    if (response < 0 || response >= p->config.response_count)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "response %d does not exist; there are %d", response + 1,
                       p->config.response_count);
    if (p->motion) /* the only one */
        return GPUCONV_OK;
    gpuconv_status status = load_response(p, response, &ir, error);
    if (status)
        return status;
    status = gpuconv_realtime_swap(p->realtime, ir, p->config.crossfade, error);
    if (!status) {
        note_applied(p, ir);
        atomic_store(&p->response, response);
        atomic_store(&p->lead, gpuconv_ir_lead(ir));
        atomic_store(&p->tail, gc_max(atomic_load(&p->tail), gpuconv_ir_frames(ir)));
    }
    gpuconv_ir_free(ir);
    return status;
}

/* Ends and joins the recorder, which writes what was handed to it. */
static void stop_recorder(gc_player *p) {
    atomic_store(&p->recording, false);
    if (p->recorder_running)
        pthread_join(p->recorder_thread, NULL);
    p->recorder_running = false;
}

/* Closes the device, then ends and joins the reader. */
static void stop_device(gc_player *p, gc_sound_end end) {
    if (p->sound)
        p->system->close(p->sound, end);
    p->sound = NULL;
    atomic_store(&p->quit, true);
    __atomic_store_n(&p->reader_cancel, 1, __ATOMIC_RELAXED);
    if (p->reader_running)
        pthread_join(p->reader_thread, NULL);
    p->reader_running = false;
}

gpuconv_status gc_player_stop(gc_player *p, bool failed, bool *recorded, gpuconv_error *error) {
    stop_recorder(p); /* first, and committed: closing a device may take long, or end the process */
    gpuconv_status committed = p->writer ? gc_writer_commit(p->writer, error) : GPUCONV_OK;
    *recorded = p->writer && !committed;
    const bool drain = atomic_load(&p->finished) && !atomic_load(&p->thread_failed);
    stop_device(p, failed ? GC_SOUND_ABANDON : drain ? GC_SOUND_DRAIN : GC_SOUND_ABORT);
    if (!p->err)
        return committed;
    *error = p->error;
    return p->err;
}

int64_t gc_player_nonfinite(const gc_player *p) {
    return atomic_load(&p->nonfinite) + (p->reader ? gc_reader_nonfinite(p->reader, NULL) : 0);
}

void gc_player_free(gc_player *p) {
    if (!p)
        return;
    stop_recorder(p);
    stop_device(p, GC_SOUND_ABORT);
    gpuconv_realtime_free(p->realtime);
    gc_moving_close(&p->moving);
    gc_reader_free(p->reader);
    gc_resampler_free(p->resampler);
    gc_writer_free(p->writer);
    gc_frame_ring_free(&p->prefetched);
    gc_frame_ring_free(&p->recorded);
    free(p->scratch);
    gc_follow_free(p->follow);
    gc_decoder_free(p->decoder);
    gpuconv_sofa_free(p->sofa);
    free(p->history);
    free(p);
}
