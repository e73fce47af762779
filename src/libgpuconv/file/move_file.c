/* The job with moving sources, or a head that turns: reader, moving sources and writer on one thread, in blocks; the
 * filters on all cores. */

#include "job.h"

#include "gpuconv_rooms.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/table.h"
#include "libgpuconv/dsp/dither.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/settings.h"
#include "libgpuconv/ir/sofa.h"
#include "libgpuconv/space/head.h"
#include "libgpuconv/space/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 14 /* frames */ };

/* A running job. */
typedef struct move {
    const gpuconv_job *job;
    gc_moving moving;
    gc_transfer transfer; /* its reader, writer, window and figures */
    gc_stream_stats stats;
    float *in, *planes;  /* a block: interleaved, and one channel after the other */
    float *out, *result; /* the same of the receivers */
    float factor;        /* of the gains */
    double begin;        /* seconds */
} move;

bool gc_moves(const gpuconv_job *job) {
    return job->path || job->receiver_path || job->head || job->room;
}

gpuconv_status gc_moving_check(const gpuconv_job *job, gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    if (job->receiver_path && !job->room)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: is no room; a path of receivers needs a simulated one, \"room:size=5x4x3 ...\"",
                       job->response);
    if (!job->room && !gc_is_sofa(job->response))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: is no SOFA file; a path moves sources, and a head turns, among the responses of "
                       "a .sofa file, or in a room, \"room:size=5x4x3 ...\"",
                       job->response);
    if (job->room && (p->direction || p->speakers))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: in a room sources have places, source=X,Y,Z, or a path; leave out a direction and a layout",
                       job->response);
    if (job->room && !job->path && !job->room->source)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: has no place for the sources; name source=X,Y,Z for each channel, or a path",
                       job->response);
    if (job->path && (p->direction || p->speakers))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: has the directions of all channels; leave out a direction and a layout", job->path);
    if (!job->room && !job->path && !p->direction == !p->speakers)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: turns a head before sources; name a path, a direction or a layout", job->head);
    return GPUCONV_OK;
}

/* Makes moving sources in the room of a job. */
static gpuconv_status open_room(gc_moving *m, const gpuconv_job *job, const gpuconv_motion_config *config, double rate,
                                int channels, gpuconv_error *error) {
    gpuconv_rooms_job room = gpuconv_rooms_job_default();
    gpuconv_status status = GPUCONV_OK;
    memcpy(&room, job->room, (size_t)gc_min((int64_t)job->room->size, sizeof room));
    room.size = sizeof room;
    room.frames = llrint(fmin((double)room.frames * rate / room.rate, 0x1p30));
    room.rate = rate;
    if (!job->path && room.sources != channels)
        status = gc_fail(error, GPUCONV_ERROR_TOPOLOGY, "%s: %lld source%s for %d channel%s", job->response,
                         (long long)room.sources, room.sources == 1 ? "" : "s", channels, channels == 1 ? "" : "s");
    if (!status && job->path)
        status = gpuconv_path_load_in_room(job->path, channels, &m->path, error);
    if (!status && job->receiver_path)
        status = gpuconv_path_load_in_room(job->receiver_path, 1, &m->receiver_path, error);
    return status ? status : gpuconv_motion_new_in_room(&room, m->path, m->receiver_path, config, &m->motion, error);
}

gpuconv_status gc_moving_open(gc_moving *m, const gpuconv_job *job, const gpuconv_config *config, double rate,
                              int channels, gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    gpuconv_motion_config how = gpuconv_motion_config_default();
    how.interval = job->interval != 0 ? job->interval : how.interval;
    how.interpolate = p->interpolate;
    how.by_distance = p->by_distance;
    how.decode = p->decode;
    how.diffuse_eq = p->diffuse_eq;
    how.ambisonics = p->ambisonics;
    how.doppler = job->doppler;
    how.threads = config->threads;
    how.backend = config->backend;
    how.device = config->device;
    gpuconv_status status = job->head ? gpuconv_head_load(job->head, &m->head, error) : GPUCONV_OK;
    how.head = m->head;
    if (!status && job->room)
        return open_room(m, job, &how, rate, channels, error);
    if (!status)
        status = gpuconv_sofa_open(job->response, rate, &m->set, error);
    if (!status)
        status = job->path
                     ? gpuconv_path_load(job->path, channels, &m->path, error)
                     : gpuconv_path_new_still(p->direction ? p->direction : p->speakers, channels, &m->path, error);
    return status ? status : gpuconv_motion_new(m->set, m->path, &how, &m->motion, error);
}

void gc_moving_close(gc_moving *m) {
    gpuconv_motion_free(m->motion);
    gpuconv_path_free(m->path);
    gpuconv_path_free(m->receiver_path);
    gpuconv_head_free(m->head);
    gpuconv_sofa_free(m->set);
}

/* Checks that the job asks for nothing that a moving source does not have. Returns ARGUMENT, UNSUPPORTED. */
static gpuconv_status check(const gpuconv_job *job, gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    const gc_settings given = {.preparation = *p, .job = *job};
    bool edited = p->series_count || p->wet != 0 || p->dry > -HUGE_VAL;
    char text[GC_SETTING_TEXT_ROOM];
    for (int id = GC_SETTING_IR_START; id < GC_SETTING_IR_GAIN; id++)
        edited = edited || gc_setting_print(&given, (gc_setting_id)id, text);
    for (int id = GC_SETTING_INTERPOLATE; id <= GC_SETTING_DIFFUSE_EQ && job->room; id++)
        edited = edited || gc_setting_print(&given, (gc_setting_id)id, text);
    const gpuconv_status status = gc_moving_check(job, error);
    if (status)
        return status;
    if (p->yaw != 0 || p->pitch != 0 || p->roll != 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a path and a head that turns exclude turns of a head that rests");
    if (edited)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "%s: with a path or a head that turns the responses are not edited; of the steps, %sgain %s possible",
            job->response, job->room ? "" : "interpolation, distance, decoder and ", job->room ? "is" : "are");
    if (job->mode != GPUCONV_MODE_FULL || job->compare || job->plot)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "with a path or a head that turns, keep all frames or a part of the tail, and compare and draw nothing");
    return GPUCONV_OK;
}

/* Opens set, path and writer. Returns the errors of gc_move_file. */
static gpuconv_status set_up(move *m, const gpuconv_config *config, gpuconv_error *error) {
    const gpuconv_job *job = m->job;
    const gc_audio_info *in = gc_reader_info(m->transfer.reader);
    gpuconv_status status = gc_moving_open(&m->moving, job, config, in->rate, in->channels, error);
    if (status)
        return status;
    const int receivers = gpuconv_motion_receivers(m->moving.motion);
    const gc_window_wish wish = {job, in->rate, in->frames, job->input, 0, gpuconv_motion_tail(m->moving.motion)};
    status = gc_window_find(&wish, &m->transfer.window, error);
    if (!status)
        status = gc_transfer_open(&m->transfer, job, receivers, false,
                                  gc_window_frames(&m->transfer.window, in->frames), error);
    if (status)
        return status;
    const int64_t wide = BLOCK * (int64_t)sizeof(float);
    m->in = gc_calloc(in->channels, wide);
    m->planes = gc_calloc(in->channels, wide);
    m->out = gc_calloc(receivers, wide);
    m->result = gc_calloc(receivers, wide);
    m->factor = (float)pow(10, (job->gain + job->preparation->gain) / 20);
    return m->in && m->planes && m->out && m->result ? gc_transfer_begin(&m->transfer, error)
                                                     : gc_fail_memory(error, job->output);
}

/* Writes the frames of the result that no later input changes. Returns FILE, MEMORY, CANCELLED. */
static gpuconv_status write_ready(move *m, gpuconv_error *error) {
    const int receivers = gpuconv_motion_receivers(m->moving.motion);
    float *rows[GC_MAX_CHANNELS];
    gpuconv_status status = GPUCONV_OK;
    int64_t got = 1;
    for (int r = 0; r < receivers; r++)
        rows[r] = m->result + (int64_t)r * BLOCK;
    while (got > 0 && !status) {
        (void)gpuconv_motion_fetch(m->moving.motion, rows, BLOCK, &got);
        for (int64_t i = 0; i < got; i++)
            for (int r = 0; r < receivers; r++)
                m->out[i * receivers + r] = m->factor * rows[r][i];
        status = gc_transfer_put(&m->transfer, m->out, got, error);
    }
    return status;
}

/* Reads a block and feeds it; an empty one ends the input. Returns FILE, FORMAT, MEMORY, CANCELLED. */
static gpuconv_status feed_block(move *m, int64_t *got, gpuconv_error *error) {
    gc_transfer *t = &m->transfer;
    const int channels = gc_reader_info(t->reader)->channels;
    float *rows[GC_MAX_CHANNELS];
    const double begin = gc_now();
    gpuconv_status status = gc_reader_read_floats(t->reader, m->in, BLOCK, got, error);
    if (status)
        return status;
    for (int c = 0; c < channels; c++)
        rows[c] = m->planes + (int64_t)c * BLOCK;
    gc_pcm_unpack(gc_simd_best(), (gc_pcm){GC_F32, 32}, m->in, channels, *got, rows, 0);
    t->read += *got;
    const double fed = gc_now();
    t->read_seconds += fed - begin;
    status = gpuconv_motion_feed(m->moving.motion, (const float *const *)rows, *got, error);
    m->stats.compute += gc_now() - fed;
    return status;
}

/* Moves all blocks. */
static gpuconv_status run(move *m, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int64_t got = 1; got > 0 && !status;) {
        if (gc_cancelled())
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "%s: interrupted, nothing written", m->job->output);
        status = feed_block(m, &got, error);
        if (got == 0)
            gc_transfer_end_input(&m->transfer);
        if (!status)
            status = write_ready(m, error);
        if (!status)
            gc_send_progress(m->job, m->transfer.reader, m->transfer.read, m->begin, NULL);
    }
    if (!status)
        status = gc_reader_check_end(m->transfer.reader, error);
    return status ? status : gc_writer_commit(m->transfer.writer, error);
}

static void close_all(move *m) {
    gc_moving_close(&m->moving);
    gc_writer_free(m->transfer.writer);
    free(m->in);
    free(m->planes);
    free(m->out);
    free(m->result);
    gc_transfer_end(&m->transfer);
}

/* Sends a note of what moves, and how. Returns UNSUPPORTED. */
static gpuconv_status note_motion(const move *m, gpuconv_error *error) {
    const gpuconv_job *job = m->job;
    const gpuconv_preparation *p = job->preparation;
    const gc_moving *moving = &m->moving;
    const int channels = gc_reader_info(m->transfer.reader)->channels;
    const double interval = 1e3 * (job->interval != 0 ? job->interval : gpuconv_motion_config_default().interval);
    const char *place = job->path ? job->path : job->room ? "" : p->direction ? p->direction : p->speakers;
    gpuconv_interpolate how = p->interpolate;
    gpuconv_status status = moving->set ? gc_sofa_choose(moving->set, &how, error) : GPUCONV_OK;
    const bool ambisonic = !job->path && strcmp(place, "ambisonic") == 0;
    char path_rows[64] = "", head_rows[64] = "", receiver_rows[64] = "", what[512];
    if (job->path)
        gc_track_describe(&moving->path->text, path_rows);
    if (moving->head)
        gc_track_describe(&moving->head->text, head_rows);
    if (job->receiver_path)
        gc_track_describe(&moving->receiver_path->text, receiver_rows);
    (void)gc_format(what, sizeof what, "%d channel%s %s%s%s%s%s%s%s", channels, channels == 1 ? "" : "s",
                    job->path ? "move" : "stay", channels == 1 ? "s" : "",
                    job->path   ? " along "
                    : job->room ? ""
                                : " at ",
                    place, path_rows, job->head ? " before a head that turns" : "", head_rows);
    if (!status && job->room)
        gc_note(job, "%s: %s, receivers %s%s%s, responses simulated every %g ms", job->response, what,
                job->receiver_path ? "along " : "stay", job->receiver_path ? job->receiver_path : "", receiver_rows,
                interval);
    else if (!status)
        gc_note(job, "%s: %s, %s %d directions, every %g ms%s%s", job->response, what,
                ambisonic                             ? "decoded by a fit to"
                : how == GPUCONV_INTERPOLATE_TRIANGLE ? "interpolated between three of"
                                                      : "to the nearest of",
                moving->set->measurements, interval, job->doppler ? ", with the Doppler effect" : "",
                moving->set->exchanged ? GC_SOFA_EXCHANGED : "");
    return status;
}

gpuconv_status gc_move_file(const gpuconv_job *job, const gpuconv_config *config, gc_reader *reader,
                            gpuconv_report *report, gpuconv_error *error) {
    move m = {
        .job = job,
        .begin = gc_now(),
        .transfer = {.reader = reader, .output = job->output, .chunk = BLOCK, .convert = true, .dither = job->dither}};
    gpuconv_status status = check(job, error);
    if (!status)
        status = set_up(&m, config, error);
    const double setup = gc_now() - m.begin;
    if (!status)
        status = note_motion(&m, error);
    if (!status)
        status = run(&m, error);
    if (!status) {
        m.stats.overs = m.transfer.overs;
        gc_report_run(report, job, &m.transfer, &m.stats, setup, gc_now() - m.begin);
    }
    close_all(&m);
    return status;
}
