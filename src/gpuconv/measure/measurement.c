/* A take plays samples and records the inputs at the same time: the device's callback only copies, and this thread
 * waits until it has finished. All sweeps of a measurement are one stream: background noise, then the sweeps with their
 * silences, then a margin for the latency. A gap in the stream therefore shows as a shift of the sweeps after it. */
#include "measurement.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/ir/read_files.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- A take ------------------------------------------------------------------------------------------------------ */

typedef struct take_config {
    const gc_measurement_config *of; /* devices and channels; channels before the one that plays are silent */
    double rate;
    const float *samples;
    int64_t played, recorded; /* frames; recorded >= played */
    int64_t lead;             /* first frames, in which gaps do no harm: devices often report some at the beginning */
} take_config;

static const int take_block = 4096; /* frames per callback, by default: a measurement needs no short latency */

typedef struct take_result {
    float *samples;    /* inputs x recorded, planar; freed by the caller */
    int64_t xruns;     /* underflows and overflows that the device reported after the lead */
    int64_t nonfinite; /* samples that were NaN or infinite; they are 0 */
} take_result;

typedef struct recorder {
    const take_config *config;
    float *samples;
    _Atomic int64_t at; /* frames that are played and recorded */
} recorder;

/* The device's callback. */
static void exchange(void *context, const float *const *in, float *const *out, int64_t frames) {
    recorder *r = context;
    const take_config *c = r->config;
    int64_t at = atomic_load_explicit(&r->at, memory_order_relaxed), n = gc_min(frames, c->recorded - at);
    for (int o = 0; o < c->of->output; o++)
        memset(out[o], 0, (size_t)frames * sizeof(float));
    if (at < c->played)
        memcpy(out[c->of->output - 1], c->samples + at, (size_t)gc_min(frames, c->played - at) * sizeof(float));
    for (int i = 0; i < c->of->inputs && n > 0; i++)
        memcpy(r->samples + i * c->recorded + at, in[i], (size_t)n * sizeof(float));
    atomic_store_explicit(&r->at, at + n, memory_order_release);
}

/* Waits until everything is recorded. @param xruns gets the gaps after the lead */
static gpuconv_status wait_for_end(const gc_sound_system *system, gc_sound_device *sound, recorder *r, int64_t *xruns,
                                   gpuconv_error *error) {
    const double period = 0.01;
    const struct timespec interval = {0, (long)(1e9 * period)};
    const gc_measurement_config *c = r->config->of;
    gc_sound_watch watch = {.rate = r->config->rate, .block = c->block ? c->block : take_block};
    int64_t at = 0, before = 0;
    for (; gc_sound_works(&watch, system->is_active(sound), at, period); nanosleep(&interval, NULL)) {
        at = atomic_load_explicit(&r->at, memory_order_acquire);
        *xruns = system->xruns(sound) - before;
        if (at <= r->config->lead)
            before += *xruns;
        if (at >= r->config->recorded)
            return GPUCONV_OK;
        if (c->cancel && *c->cancel)
            return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    }
    return gc_fail(error, GPUCONV_ERROR_DEVICE, "the sound device has failed, was removed, or delivers no sound");
}

/* Plays and records; returns when all is recorded. @return UNSUPPORTED (no sound in this build), DEVICE (also if the
 * device stops delivering), MEMORY, CANCELLED */
static gpuconv_status record_take(const take_config *c, take_result *take, gpuconv_error *error) {
    const gc_measurement_config *m = c->of;
    const gc_sound_system *system;
    gc_sound_device *sound = NULL;
    recorder r = {.config = c};
    *take = (take_result){0};
    gpuconv_status status = gc_sound_load(m->sound, &system, error);
    if (status)
        return status;
    r.samples = gc_calloc(c->recorded * m->inputs, sizeof *r.samples);
    if (!r.samples)
        return gc_fail_memory(error, "the recording");
    const gc_sound_config config = {.output = m->output_device,
                                    .input = m->input_device,
                                    .inputs = m->inputs,
                                    .outputs = m->output,
                                    .rate = c->rate,
                                    .block = m->block ? m->block : take_block,
                                    .callback = exchange,
                                    .context = &r};
    status = system->open(&config, &sound, error);
    if (!status) {
        status = system->start(sound, error);
        if (!status)
            status = wait_for_end(system, sound, &r, &take->xruns, error);
        system->close(sound, status == GPUCONV_ERROR_DEVICE ? GC_SOUND_ABANDON : GC_SOUND_ABORT);
    }
    int64_t first;
    take->nonfinite = status ? 0 : gc_zero_nonfinite(r.samples, c->recorded * m->inputs, &first);
    if (status)
        free(r.samples);
    else
        take->samples = r.samples;
    return status;
}

/* ---- The measurement --------------------------------------------------------------------------------------------- */

static const double margin = 2;           /* seconds of latency at most */
static const double before_onset = 0.005; /* seconds before the direct sound without loopback */

/* A stream that is played and its recording. */
typedef struct stream {
    const gc_measurement_config *config;
    const gc_microphone *microphones; /* of all inputs but the loopback */
    gpuconv_ir *sweep;                /* with its silence */
    int64_t noise, period, frames;    /* frames of noise, of a sweep with its silence, of the recording */
    int repeat;
    float *recorded; /* inputs x frames */
    int64_t xruns, nonfinite;
} stream;

static gpuconv_status check_config(const gc_measurement_config *c, gpuconv_error *error) {
    if (c->inputs < 1 || c->inputs > GC_MEASURE_INPUTS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "1 to %d inputs can be recorded, not %d", GC_MEASURE_INPUTS,
                       c->inputs);
    if (c->loopback > c->inputs || (c->loopback && c->inputs < 2))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the loopback is input %d, but %d are recorded; record it and at least one more", c->loopback,
                       c->inputs);
    if (c->repeat < 1 || c->repeat > GC_MEASURE_REPEAT)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "1 to %d sweeps can be averaged, not %d", GC_MEASURE_REPEAT,
                       c->repeat);
    if (!(c->sweep.silence >= 0.1))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "the silence after the sweep, in which the room decays, must be at least 0.1 s, not %g",
                       c->sweep.silence);
    return GPUCONV_OK;
}

static const float *input_of(const stream *s, int input) {
    return s->recorded + input * s->frames;
}

static void close_stream(stream *s) {
    gpuconv_ir_free(s->sweep);
    free(s->recorded);
}

/* Plays the sweeps and records. */
static gpuconv_status run_stream(stream *s, const gc_sweep *sweep, double noise, int repeat, gpuconv_error *error) {
    const gc_measurement_config *c = s->config;
    float *samples, *played = NULL;
    take_result take;
    gpuconv_status status = gc_sweep_samples(sweep, &samples, &s->period, error);
    if (status)
        return status;
    s->noise = llrint(noise * sweep->rate);
    s->repeat = repeat;
    int64_t total = s->noise + repeat * s->period;
    s->frames = total + llrint(margin * sweep->rate);
    status = gpuconv_ir_new((const float *const[]){samples}, 1, s->period, sweep->rate, &s->sweep, error);
    if (!status && !(played = gc_calloc(total, sizeof *played)))
        status = gc_fail_memory(error, "the sweeps");
    for (int r = 0; r < repeat && !status; r++)
        memcpy(played + s->noise + r * s->period, samples, (size_t)s->period * sizeof *played);
    const take_config config = {
        .of = c, .rate = sweep->rate, .samples = played, .played = total, .recorded = s->frames, .lead = s->noise};
    if (!status)
        status = record_take(&config, &take, error);
    if (!status) {
        s->recorded = take.samples;
        s->xruns = take.xruns;
        s->nonfinite = take.nonfinite;
    }
    free(samples);
    free(played);
    return status;
}

/* Returns the RMS of the background noise of an input in dBFS. */
static double noise_level(const stream *s, int input) {
    double sum = 0;
    for (int64_t i = 0; i < s->noise; i++)
        sum += pow((double)input_of(s, input)[i], 2);
    return s->noise > 0 ? 10 * log10(sum / (double)s->noise) : (double)NAN;
}

/* Finds the first sweep in every input. Its lag counts from where the sweep was played. If the sweeps follow each other
 * sooner than the margin, the search finds any of them, and then looks before that one. */
static gpuconv_status find_sweeps(const stream *s, gc_sweep_channel *found, gpuconv_error *error) {
    const int64_t frames = gc_min(s->period + llrint(margin * s->sweep->rate), s->frames - s->noise);
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < s->config->inputs && !status; i++) {
        const float *x = input_of(s, i) + s->noise;
        gc_sweep_channel before;
        status = gc_sweep_find(x, frames, s->sweep, &found[i], error);
        while (!status && found[i].held && found[i].lag >= s->period) {
            status = gc_sweep_find(x, found[i].lag, s->sweep, &before, error);
            if (status || !before.held)
                break;
            found[i] = before;
        }
        found[i].noise = noise_level(s, i);
    }
    return status;
}

/* Returns the number of inputs with a microphone. */
static int microphones_of(const gc_measurement_config *c) {
    return c->inputs - (c->loopback > 0);
}

/* Returns the sensitivity of an input's microphone; NaN: unknown, or the loopback. */
static double sensitivity_of(const stream *s, int input) {
    int loopback = s->config->loopback - 1;
    return input == loopback ? (double)NAN : s->microphones[input - (loopback >= 0 && input > loopback)].sensitivity;
}

/* Writes a level, in dB SPL if the sensitivity is known; "-" for silence. */
static const char *level_text(double level, double sensitivity, char *text, size_t room) {
    if (isfinite(level) && isfinite(sensitivity))
        (void)gc_format(text, room, "%.1f dB SPL", level + sensitivity);
    else
        (void)gc_format(text, room, isfinite(level) ? "%.1f dBFS" : "-", level);
    return text;
}

/* Plays a sweep of one second and looks at the levels. */
static gpuconv_status check_levels(const gc_measurement_config *c, const gc_microphone *microphones,
                                   gpuconv_error *error) {
    gc_sweep sweep = c->sweep;
    gc_sweep_channel found[GC_MEASURE_INPUTS];
    stream s = {.config = c, .microphones = microphones};
    sweep.seconds = 1;
    sweep.silence = 0.5;
    gpuconv_status status = run_stream(&s, &sweep, 0.5, 1, error);
    if (!status)
        status = find_sweeps(&s, found, error);
    int clipped = 0, held = 0;
    for (int i = 0; i < c->inputs && !status; i++) {
        char line[160];
        char peak[24], noise[24];
        (void)snprintf(line, sizeof line, "input %d: peak %s, background noise %s%s%s", i + 1,
                       level_text(found[i].peak, (double)NAN, peak, sizeof peak),
                       level_text(found[i].noise, sensitivity_of(&s, i), noise, sizeof noise),
                       found[i].held ? "" : ", no sweep", found[i].clipped ? ", clips" : "");
        if (c->note)
            c->note(line);
        clipped = !clipped && found[i].clipped ? i + 1 : clipped;
        held += found[i].held && i + 1 != c->loopback;
    }
    close_stream(&s);
    if (!status && clipped)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT,
                         "input %d clips in the level check; lower its gain, or the sweep with --level", clipped);
    else if (!status && !held)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT,
                         "no input receives the sweep in the level check; check devices, cables and gains, or raise "
                         "--level");
    return status;
}

/* Returns the input that the sweeps are aligned to: the loopback, else the one with the largest crest; -1: none. */
static int find_reference(const gc_measurement_config *c, const gc_sweep_channel *found) {
    int best = -1;
    if (c->loopback)
        return found[c->loopback - 1].held ? c->loopback - 1 : -1;
    for (int i = 0; i < c->inputs; i++)
        if (found[i].held && (best < 0 || found[i].crest > found[best].crest))
            best = i;
    return best;
}

/* Returns the frame after the beginning of a sweep that becomes the beginning of its recording. */
static int64_t find_start(const gc_measurement_config *c, const gc_sweep_channel *found, int reference) {
    int64_t earliest = found[reference].lag;
    if (c->loopback)
        return earliest;
    for (int i = 0; i < c->inputs; i++)
        if (found[i].held)
            earliest = gc_min(earliest, found[i].lag);
    return earliest - llrint(before_onset * c->sweep.rate);
}

/* The sweeps that a mean may contain. */
typedef struct takes {
    int64_t start, lag; /* frame of a sweep's recording after its beginning; lag of the first in the reference */
    int count, sweep[GC_MEASURE_REPEAT]; /* numbers of the sweeps, from 0 */
    double disturbed[GC_MEASURE_REPEAT]; /* seconds after a sweep's beginning; negative: not disturbed */
    int input[GC_MEASURE_REPEAT];        /* that is disturbed */
} takes;

/* Returns the recording of a sweep; `frames` gets its length, which is shorter at the end of the stream. */
static const float *take_of(const stream *s, const takes *t, int sweep, int input, int64_t *frames) {
    int64_t at = s->noise + sweep * s->period + t->start;
    *frames = gc_min(s->period, s->frames - at);
    return input_of(s, input) + at;
}

/* Lists the sweeps that the reference holds at the same time as the first. Another was recorded with a gap. */
static gpuconv_status list_takes(const stream *s, int reference, takes *t, gpuconv_error *error) {
    for (int r = 0; r < s->repeat; r++) {
        int64_t frames;
        gc_sweep_channel found;
        const float *x = take_of(s, t, r, reference, &frames);
        gpuconv_status status = gc_sweep_find(x, frames, s->sweep, &found, error);
        if (status)
            return status;
        if (found.lag + t->start != t->lag)
            continue;
        t->disturbed[t->count] = -1;
        t->sweep[t->count++] = r;
    }
    return GPUCONV_OK;
}

/* Compares a part of every sweep with the same part of the sweeps beside it: what differs from both by 10 dB more than
 * the background noise, and more than in the other sweeps, is disturbed. With two sweeps both are. */
static void compare_part(const stream *s, takes *t, int input, int64_t from, int64_t length, double noise) {
    double next[GC_MEASURE_REPEAT], own[GC_MEASURE_REPEAT], sorted[GC_MEASURE_REPEAT], energy = 0;
    int64_t frames;
    for (int k = 0; k < t->count; k++) {
        const float *x = take_of(s, t, t->sweep[k], input, &frames),
                    *y = take_of(s, t, t->sweep[(k + 1) % t->count], input, &frames);
        next[k] = 0;
        for (int64_t i = from; i < from + length; i++) {
            next[k] += pow((double)x[i] - (double)y[i], 2);
            energy += pow((double)x[i], 2);
        }
    }
    energy /= t->count;
    for (int k = 0; k < t->count; k++)
        sorted[k] = own[k] = fmin(next[k], next[(k + t->count - 1) % t->count]);
    gc_sort(sorted, t->count);
    double usual = t->count > 2 ? fmax(sorted[(t->count - 1) / 2], 1e-7 * energy) : 1e-4 * energy;
    double limit = 10 * fmax(usual, 2 * noise * (double)length);
    for (int k = 0; k < t->count; k++)
        if (own[k] > limit && t->disturbed[k] < 0) {
            t->disturbed[k] = fmax(0, (double)(from + t->start - t->lag) / s->sweep->rate);
            t->input[k] = input;
        }
}

/* Looks for disturbed sweeps in parts of 50 ms, notes them, and leaves them out if enough others are left. */
static void leave_out_disturbed(const stream *s, takes *t, gc_measurement *result) {
    int64_t part = gc_max(1, llrint(0.05 * s->sweep->rate)), end;
    (void)take_of(s, t, s->repeat - 1, 0, &end);
    for (int i = 0; i < s->config->inputs && t->count > 1; i++) {
        double noise = pow(10, result->channel[i].noise / 10);
        for (int64_t from = 0; from + part <= end; from += part)
            compare_part(s, t, i, from, part, isfinite(noise) ? noise : 0);
    }
    for (int k = 0; k < t->count; k++)
        result->disturbed += t->disturbed[k] >= 0;
    bool leaves_out = t->count > 2 && result->disturbed < t->count;
    int kept = 0;
    for (int k = 0; k < t->count; k++) {
        char line[120];
        bool is_disturbed = t->disturbed[k] >= 0;
        (void)gc_format(line, sizeof line, "sweep %d is disturbed at input %d after %.2f s%s", t->sweep[k] + 1,
                        t->input[k] + 1, t->disturbed[k], leaves_out ? " and is left out" : "");
        if (is_disturbed && s->config->note)
            s->config->note(t->count > 2 ? line : "the two sweeps differ: one is disturbed; --repeat 3 tells which");
        if (is_disturbed && t->count == 2)
            break;
        if (!is_disturbed || !leaves_out)
            t->sweep[kept++] = t->sweep[k];
    }
    t->count = leaves_out ? kept : t->count;
}

/* Adds up the recordings of all sweeps but those with a gap and disturbed ones. @param mean inputs x period */
static gpuconv_status add_up(const stream *s, int64_t start, int reference, float *mean, gc_measurement *result,
                             gpuconv_error *error) {
    takes t = {.start = start, .lag = result->channel[reference].lag};
    gpuconv_status status = list_takes(s, reference, &t, error);
    if (status)
        return status;
    result->left_out = s->repeat - t.count;
    leave_out_disturbed(s, &t, result);
    result->repeats = t.count;
    for (int k = 0; k < t.count; k++)
        for (int i = 0; i < s->config->inputs; i++) {
            int64_t frames;
            const float *x = take_of(s, &t, t.sweep[k], i, &frames);
            for (int64_t f = 0; f < frames; f++)
                mean[i * s->period + f] += x[f] / (float)t.count;
        }
    return GPUCONV_OK;
}

/* Divides the mean recording by the sweep and writes the response, without the loopback. */
static gpuconv_status write_response(const stream *s, const float *mean, const char *path, gc_measurement *result,
                                     gpuconv_error *error) {
    const gc_measurement_config *c = s->config;
    const float *plane[GC_MEASURE_INPUTS];
    gc_sweep_channel *found[GC_MEASURE_INPUTS], kept[GC_MEASURE_INPUTS];
    gpuconv_ir *recording = NULL;
    int count = 0;
    double seconds = c->length > 0 ? c->length : c->sweep.silence;
    int64_t frames = gc_max(1, gc_min(s->period, llrint(seconds * c->sweep.rate)));
    for (int i = 0; i < c->inputs; i++)
        if (i + 1 != c->loopback) {
            found[count] = &result->channel[i];
            kept[count] = result->channel[i];
            plane[count++] = mean + i * s->period;
        }
    gpuconv_status status = gpuconv_ir_new(plane, count, s->period, c->sweep.rate, &recording, error);
    if (!status && c->recording)
        status = gc_ir_write(recording, c->recording, true, error);
    result->channels = count;
    if (!status && c->distortion && !(result->distortion = gc_calloc(count, (int64_t)sizeof *result->distortion)))
        status = gc_fail_memory(error, path);
    if (!status) {
        const gc_sweep_division division = {
            .frames = frames, .microphone = s->microphones, .distortion = result->distortion};
        status = gc_sweep_respond(recording, s->sweep, &division, path, kept, &result->delay, error);
    }
    for (int i = 0; i < count && !status; i++) {
        found[i]->inr = kept[i].inr;
        found[i]->decays = kept[i].decays;
        found[i]->sensitivity = kept[i].sensitivity;
        found[i]->timing = kept[i].timing;
        found[i]->ends_early = kept[i].ends_early;
    }
    gpuconv_ir_free(recording);
    return status;
}

/* Fails if the sweep is missing, and counts the inputs without it. */
static gpuconv_status check_found(const gc_measurement_config *c, gc_measurement *result, int reference,
                                  gpuconv_error *error) {
    int held = 0;
    for (int i = 0; i < c->inputs; i++) {
        bool is_loopback = i + 1 == c->loopback;
        held += result->channel[i].held && !is_loopback;
        result->without += !result->channel[i].held && !is_loopback;
    }
    if (reference < 0 && c->loopback)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "the loopback, input %d, does not receive the sweep; connect it to the output", c->loopback);
    if (!held)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "no input receives the sweep; check devices, cables and gains, or raise --level");
    return GPUCONV_OK;
}

gpuconv_status gc_measure(const gc_measurement_config *c, const char *response, gc_measurement *result,
                          gpuconv_error *error) {
    stream s = {.config = c};
    gc_microphone *microphones = NULL;
    float *mean = NULL;
    *result = (gc_measurement){.inputs = c->inputs};
    gpuconv_status status = check_config(c, error);
    if (!status)
        status = gc_microphones_keep(&c->microphones, response, error);
    if (!status && c->recording)
        status = gc_ir_keep_files(c->recording, &response, 1, error);
    if (!status && c->recording)
        status = gc_microphones_keep(&c->microphones, c->recording, error);
    if (!status)
        status = gc_microphones_new(&c->microphones, microphones_of(c), &microphones, error);
    s.microphones = microphones;
    if (!status && c->check)
        status = check_levels(c, microphones, error);
    if (!status)
        status = run_stream(&s, &c->sweep, c->noise, c->repeat, error);
    if (!status)
        status = find_sweeps(&s, result->channel, error);
    int reference = status ? -1 : find_reference(c, result->channel);
    if (!status)
        status = check_found(c, result, reference, error);
    if (!status && !(mean = gc_calloc(c->inputs * s.period, sizeof *mean)))
        status = gc_fail_memory(error, response);
    if (!status) {
        int64_t start = gc_max(-s.noise, find_start(c, result->channel, reference));
        result->latency = c->loopback ? result->channel[reference].lag : start + llrint(before_onset * c->sweep.rate);
        result->xruns = s.xruns;
        result->nonfinite = s.nonfinite;
        status = add_up(&s, start, reference, mean, result, error);
    }
    if (!status && !result->repeats)
        status = gc_fail(error, GPUCONV_ERROR_DEVICE,
                         "every sweep was recorded with a gap; use larger blocks (--block) or close other programs");
    if (!status)
        status = write_response(&s, mean, response, result, error);
    free(mean);
    gc_microphones_free(microphones, microphones_of(c));
    close_stream(&s);
    return status;
}
