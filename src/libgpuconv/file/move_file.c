/* The job with moving sources, or a head that turns: reader, moving sources and writer on one thread, in blocks; the
 * filters on all cores. */

#include "job.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
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
    gpuconv_sofa *set;
    gpuconv_path *path;
    gpuconv_head *head;
    gpuconv_motion *motion;
    gpuconv_motion_config config;
    gc_transfer transfer; /* its reader, writer, window and figures */
    gc_stream_stats stats;
    float *in, *planes;  /* a block: interleaved, and one channel after the other */
    float *out, *result; /* the same of the receivers */
    float factor;        /* of the gains */
    double begin;        /* seconds */
} move;

gpuconv_status gc_sources_check(const gc_sources *s, gpuconv_error *error) {
    if (s->path && (s->direction || s->speakers))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: has the directions of all channels; leave out a direction and a layout", s->path);
    if (!s->path && !s->direction == !s->speakers)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: turns a head before sources; name a path, a direction or a layout", s->head);
    return GPUCONV_OK;
}

gpuconv_status gc_sources_open(const gc_sources *s, int channels, gpuconv_path **path, gpuconv_head **head,
                               gpuconv_error *error) {
    const gpuconv_status status =
        s->path ? gpuconv_path_load(s->path, channels, path, error)
                : gpuconv_path_new_still(s->direction ? s->direction : s->speakers, channels, path, error);
    return status || !s->head ? status : gpuconv_head_load(s->head, head, error);
}

static gc_sources sources_of(const gpuconv_job *job) {
    return (gc_sources){job->path, job->preparation->direction, job->preparation->speakers, job->head};
}

/* Checks that the job asks for nothing that a moving source does not have. Returns ARGUMENT, UNSUPPORTED. */
static gpuconv_status check(const gpuconv_job *job, gpuconv_error *error) {
    const gpuconv_preparation *p = job->preparation;
    const gc_settings given = {.preparation = *p, .job = *job};
    bool edited = p->series_count || p->wet != 0 || p->dry > -HUGE_VAL;
    char text[GC_SETTING_TEXT_ROOM];
    for (int id = GC_SETTING_IR_START; id < GC_SETTING_IR_GAIN; id++)
        edited = edited || gc_setting_print(&given, (gc_setting_id)id, text);
    if (!gc_is_sofa(job->response))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: is no SOFA file; a path moves sources, and a head turns, among the responses of "
                       "a .sofa file",
                       job->response);
    const gc_sources sources = sources_of(job);
    const gpuconv_status status = gc_sources_check(&sources, error);
    if (status)
        return status;
    if (p->yaw != 0 || p->pitch != 0 || p->roll != 0)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "a path and a head that turns exclude turns of a head that rests");
    if (edited)
        return gc_fail(
            error, GPUCONV_ERROR_ARGUMENT,
            "%s: with a path or a head that turns the responses are not edited; of the steps, interpolation, distance, "
            "decoder and gain are possible",
            job->response);
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
    const gpuconv_preparation *p = job->preparation;
    m->config = gpuconv_motion_config_default();
    m->config.interval = job->interval != 0 ? job->interval : m->config.interval;
    m->config.interpolate = p->interpolate;
    m->config.by_distance = p->by_distance;
    m->config.decode = p->decode;
    m->config.diffuse_eq = p->diffuse_eq;
    m->config.ambisonics = p->ambisonics;
    m->config.doppler = job->doppler;
    m->config.threads = config->threads;
    m->config.backend = config->backend;
    m->config.device = config->device;
    gpuconv_status status = gpuconv_sofa_open(job->response, in->rate, &m->set, error);
    const gc_sources sources = sources_of(job);
    if (!status)
        status = gc_sources_open(&sources, in->channels, &m->path, &m->head, error);
    m->config.head = m->head;
    if (!status)
        status = gpuconv_motion_new(m->set, m->path, &m->config, &m->motion, error);
    if (status)
        return status;
    const gc_window_wish wish = {job, in->rate, in->frames, job->input, 0, gpuconv_motion_tail(m->motion)};
    status = gc_window_find(&wish, &m->transfer.window, error);
    if (!status)
        status = gc_transfer_open(&m->transfer, job, m->set->receivers, false,
                                  gc_window_frames(&m->transfer.window, in->frames), error);
    if (status)
        return status;
    const int64_t wide = BLOCK * (int64_t)sizeof(float);
    m->in = gc_calloc(in->channels, wide);
    m->planes = gc_calloc(in->channels, wide);
    m->out = gc_calloc(m->set->receivers, wide);
    m->result = gc_calloc(m->set->receivers, wide);
    m->factor = (float)pow(10, (job->gain + job->preparation->gain) / 20);
    return m->in && m->planes && m->out && m->result ? gc_transfer_begin(&m->transfer, error)
                                                     : gc_fail_memory(error, job->output);
}

/* Writes the frames of the result that no later input changes. Returns FILE, MEMORY, CANCELLED. */
static gpuconv_status write_ready(move *m, gpuconv_error *error) {
    const int receivers = m->set->receivers;
    float *rows[GC_MAX_CHANNELS];
    gpuconv_status status = GPUCONV_OK;
    int64_t got = 1;
    for (int r = 0; r < receivers; r++)
        rows[r] = m->result + (int64_t)r * BLOCK;
    while (got > 0 && !status) {
        (void)gpuconv_motion_fetch(m->motion, rows, BLOCK, &got);
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
    status = gpuconv_motion_feed(m->motion, (const float *const *)rows, *got, error);
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
    gpuconv_motion_free(m->motion);
    gpuconv_path_free(m->path);
    gpuconv_head_free(m->head);
    gpuconv_sofa_free(m->set);
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
    const int channels = gc_reader_info(m->transfer.reader)->channels;
    const char *place = p->direction ? p->direction : p->speakers;
    gpuconv_interpolate how = p->interpolate;
    gpuconv_status status = gc_sofa_choose(m->set, &how, error);
    const bool ambisonic = !job->path && strcmp(place, "ambisonic") == 0;
    char path_rows[64] = "", head_rows[64] = "";
    if (job->path)
        gc_track_describe(&m->path->text, path_rows);
    if (m->head)
        gc_track_describe(&m->head->text, head_rows);
    if (!status)
        gc_note(job, "%s: %d channel%s %s%s %s%s%s%s%s, %s %d directions, every %g ms%s%s", job->response, channels,
                channels == 1 ? "" : "s", job->path ? "move" : "stay", channels == 1 ? "s" : "",
                job->path ? "along " : "at ", job->path ? job->path : place, path_rows,
                job->head ? " before a head that turns" : "", head_rows,
                ambisonic                             ? "decoded by a fit to"
                : how == GPUCONV_INTERPOLATE_TRIANGLE ? "interpolated between three of"
                                                      : "to the nearest of",
                m->set->measurements, 1e3 * m->config.interval, job->doppler ? ", with the Doppler effect" : "",
                m->set->exchanged ? GC_SOFA_EXCHANGED : "");
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
