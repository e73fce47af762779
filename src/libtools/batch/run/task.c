/* Opens, mixes, stores, reports and commits the files of one manifest entry. */
#include "task.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/dsp/dither.h"
#include "libgpuconv/dsp/loudness.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"
#include "libtools/batch/entry/text.h"
#include "libtools/batch/output/shards.h"
#include "libtools/room/room_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Mixing in memory; powers are summed in double precision ---- */

gpuconv_status gc_mix_new(gc_mix *m, int channels, int64_t frames, int rate, gpuconv_error *error) {
    const int64_t pitch = gc_round_up(gc_max(frames, 1), 16);
    *m = (gc_mix){.channels = channels, .rate = rate, .frames = frames};
    float *samples = gc_calloc(pitch * channels, sizeof *samples);
    m->row = samples ? gc_calloc(channels, (int64_t)sizeof *m->row) : NULL;
    if (!m->row) {
        free(samples);
        return gc_fail_memory(error, "a mix");
    }
    for (int c = 0; c < channels; c++)
        m->row[c] = samples + c * pitch;
    return GPUCONV_OK;
}

void gc_mix_free(gc_mix *m) {
    if (m->row)
        free(m->row[0]);
    free((void *)m->row);
    *m = (gc_mix){0};
}

void gc_mix_add(gc_mix *m, const float *const *row, int64_t frames, int64_t at) {
    const int64_t count = gc_max(0, gc_min(frames, m->frames - at));
    for (int c = 0; c < m->channels; c++) {
        const float *from = row[c];
        float *to = m->row[c] + at;
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
    }
}

double gc_mean_power(const float *const *row, int channels, int64_t frames) {
    double sum = 0;
    for (int c = 0; c < channels; c++) {
        double part[4] = {0}; /* independent sums, so that the additions overlap */
        const float *x = row[c];
        for (int64_t i = 0; i + 4 <= frames; i += 4)
            for (int k = 0; k < 4; k++)
                part[k] += (double)x[i + k] * (double)x[i + k];
        for (int64_t i = frames / 4 * 4; i < frames; i++)
            part[0] += (double)x[i] * (double)x[i];
        sum += part[0] + part[1] + part[2] + part[3];
    }
    return frames > 0 ? sum / ((double)frames * channels) : 0;
}

/* Returns the mean power of `frames` frames of noise from frame `from` on. */
static double noise_power(const gpuconv_ir *noise, int64_t from, int64_t frames) {
    double sum = 0;
    int64_t done = 0;
    while (done < frames) {
        const int64_t n = gc_min(frames - done, noise->frames - from);
        for (int p = 0; p < noise->planes; p++) {
            const float *row = gc_ir_plane(noise, p) + from;
            sum += gc_mean_power(&row, 1, n) * (double)n;
        }
        done += n;
        from = 0;
    }
    return sum / ((double)frames * noise->planes);
}

gpuconv_status gc_mix_add_noise(gc_mix *m, const gpuconv_ir *noise, int64_t from, double snr, bool *silent,
                                gpuconv_error *error) {
    if (noise->planes != 1 && noise->planes != m->channels)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "the noise has %d channels and the output %d; use noise of 1 channel or as many", noise->planes,
                       m->channels);
    const double signal = gc_mean_power((const float *const *)m->row, m->channels, m->frames);
    const double power = noise_power(noise, from, m->frames);
    *silent = !(signal > 0) || !(power > 0);
    if (*silent)
        return GPUCONV_OK;
    const double factor = sqrt(signal / power) * pow(10, -snr / 20);
    for (int c = 0; c < m->channels; c++) {
        const float *x = gc_ir_plane(noise, noise->planes == 1 ? 0 : c);
        int64_t at = from;
        for (int64_t i = 0; i < m->frames; i++) {
            m->row[c][i] = (float)((double)m->row[c][i] + factor * (double)x[at]);
            at = at + 1 < noise->frames ? at + 1 : 0;
        }
    }
    return GPUCONV_OK;
}

static double peak_of(const gc_mix *m) {
    float peak = 0;
    for (int c = 0; c < m->channels; c++)
        for (int64_t i = 0; i < m->frames; i++)
            peak = fmaxf(peak, fabsf(m->row[c][i]));
    return (double)peak;
}

gpuconv_status gc_mix_find_level(const gc_mix *m, gc_level_kind kind, double decibels, double input_power,
                                 double *factor, gpuconv_error *error) {
    const double wanted = pow(10, decibels / 20);
    double is = 0;
    *factor = 1;
    switch (kind) {
    case GC_LEVEL_NONE:
        return GPUCONV_OK;
    case GC_LEVEL_PEAK:
        is = peak_of(m);
        break;
    case GC_LEVEL_LOUDNESS:
        if (!gc_loudness((const float *const *)m->row, 1, m->channels, m->frames, m->rate, &is) || !(is > -HUGE_VAL))
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "the output has no loudness (BS.1770 needs 0.4 s above -70 LUFS, and 16 to 2822400 Hz)");
        is = pow(10, is / 20);
        break;
    default:
        is = sqrt(gc_mean_power((const float *const *)m->row, m->channels, m->frames));
        if (kind == GC_LEVEL_INPUT && input_power > 0)
            is /= sqrt(input_power);
        break;
    }
    if (is > 0 && (kind != GC_LEVEL_INPUT || input_power > 0))
        *factor = wanted / is;
    return GPUCONV_OK;
}

void gc_mix_scale(gc_mix *m, double factor) {
    if (factor == 1)
        return;
    for (int c = 0; c < m->channels; c++)
        for (int64_t i = 0; i < m->frames; i++)
            m->row[c][i] = (float)((double)m->row[c][i] * factor);
}

int64_t gc_audible_frames(const float *const *row, int channels, int64_t frames, int64_t from, float floor) {
    int64_t end = gc_min(from, frames);
    for (int c = 0; c < channels; c++)
        for (int64_t i = frames - 1; i >= end; i--)
            if (!(fabsf(row[c][i]) < floor))
                end = i + 1;
    return end;
}

/* ---- Files ---- */

const gc_entry *gc_task_entry(const gc_worker *w, const gc_task *t) {
    return &w->manifest->entry[t->entry];
}

gc_output_options gc_task_options(const gc_worker *w, const gc_task *t) {
    const gpuconv_job *job = &gc_entry_recipe(gc_task_entry(w, t))->settings.job;
    return (gc_output_options){.format = job->format,
                               .encoding = job->encoding,
                               .compression = job->compression,
                               .path_kind = GC_OUTPUT_PROGRAM_PATH,
                               .cancel = w->cancel};
}

void gc_task_close(const gc_worker *w, gc_task *t) {
    for (int i = 0; i < t->parts; i++) {
        gc_reader_free(t->part[i].reader);
        if (t->part[i].response)
            gc_responses_release(w->responses, t->part[i].response);
    }
    free(t->part);
    free(t->path);
    free(t->early_path);
    *t = (gc_task){0};
}

/* Stores the first note on an input. */
static void note_input(gc_task *t, const char *what) {
    if (!*t->input_note)
        (void)snprintf(t->input_note, sizeof t->input_note, "%s", what);
}

/* Seeks to the part of the input that the entry selects, and sets the number of frames to read. */
static gpuconv_status seek_part(const gc_entry *e, gc_task *t, gc_part *p, const char *name, gpuconv_error *error) {
    const bool is_part = e->random_offset || e->offset > 0 || e->length >= 0;
    gpuconv_status status = is_part ? gc_reader_count(p->reader, error) : GPUCONV_OK;
    if (status)
        return status;
    p->info.frames = gc_reader_info(p->reader)->frames;
    double rate = p->info.rate;
    int64_t all = p->info.frames, want = e->length < 0 ? -1 : (int64_t)llrint(e->length * rate);
    int64_t from = (int64_t)llrint(e->offset * rate);
    if (e->random_offset) {
        uint64_t state = e->seed;
        int64_t spare = all < 0 ? 0 : all - want;
        from = spare > 0 ? (int64_t)(gc_random_bits(&state) % (uint64_t)(spare + 1)) : 0;
    }
    if (p == t->part)
        t->offset = (double)from / rate;
    if (want == 0 || (all >= 0 && from >= all && from > 0))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: no samples from %g s on for a length of %g s", name, e->offset,
                       e->length);
    status = gc_reader_seek(p->reader, from, error);
    if (status)
        return status;
    p->frames = all < 0 ? want : want < 0 ? all - from : gc_min(want, all - from);
    p->to_end = all < 0 ? want < 0 : from + p->frames == all;
    if (all >= 0 && want > p->frames) {
        char text[128];
        gc_format(text, sizeof text, "%.9g s are asked for from %.9g s on, and %.9g s are there", e->length,
                  (double)from / rate, (double)p->frames / rate);
        note_input(t, text);
        t->shortened = true;
    }
    note_input(t, gc_reader_note(p->reader));
    return GPUCONV_OK;
}

gpuconv_status gc_task_check_input(const gc_worker *w, const gc_task *t, const gc_part *p, int64_t got,
                                   gpuconv_error *error) {
    if (got < p->frames)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: ends after %lld of %lld frames",
                       gc_entry_source(gc_task_entry(w, t), p->input_of).input, (long long)got, (long long)p->frames);
    return p->to_end ? gc_reader_check_end(p->reader, error) : GPUCONV_OK;
}

gpuconv_status gc_task_set_window(const gc_worker *w, const gc_task *t, gc_part *p, gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gpuconv_job *job = &gc_entry_recipe(e)->settings.job;
    const gpuconv_ir *ir = p->response->ir;
    const gc_window_wish wish = {job, p->info.rate, p->frames, e->input, ir->lead, ir->frames - 1};
    return gc_window_find(&wish, &p->window, error);
}

/* Acquires the response of a part. */
static gpuconv_status acquire(const gc_worker *w, const gc_task *t, gc_part *p, const gc_source *source, bool early,
                              gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gc_recipe *r = gc_entry_recipe(e);
    const gc_response_request request = {.path = source->response,
                                         .recipe = r,
                                         .gain = source->gain + (r->settings.level ? 0 : e->gain),
                                         .wet = e->wet,
                                         .dry = e->dry,
                                         .rate = p->info.rate,
                                         .channels = p->info.channels,
                                         .shared =
                                             e->shared || ((early || t->sources > 1) && !gc_is_room(source->response)),
                                         .kind = early ? GC_RESPONSE_EARLY : GC_RESPONSE_WHOLE,
                                         .whole = early ? t->part[p->input_of].response->ir : NULL};
    return gc_responses_acquire(w->responses, &request, &p->response, &p->response_is_new, error);
}

/* Makes the part of the early reflections of a source, which reads no input and has the same window. */
static gpuconv_status open_early(const gc_worker *w, gc_task *t, int index, const gc_source *source,
                                 gpuconv_error *error) {
    gc_part *p = &t->part[index], *early = &t->part[t->sources + index];
    *early = *p;
    early->reader = NULL;
    early->response = NULL;
    gpuconv_status status = acquire(w, t, early, source, true, error);
    if (!status)
        early->window.after = gc_min(p->window.after, early->response->ir->frames - 1);
    return status;
}

/* Opens the input and the response of one source. */
static gpuconv_status open_source(const gc_worker *w, gc_task *t, int index, gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gc_source source = gc_entry_source(e, index);
    const gc_input_options input = {.kind = GC_INPUT_REGULAR, .cancel = w->cancel}; /* a pipe would hold the lock */
    gc_part *p = &t->part[index];
    gc_state state = gc_state_of_path(source.input);
    t->input_state = index ? gc_state_join(&t->input_state, &state) : state;
    gpuconv_status status = gc_shard_open(source.input, &input, &p->reader, error);
    if (status)
        return status;
    p->info = *gc_reader_info(p->reader);
    p->input_of = index;
    p->start = (int64_t)llrint(source.start * p->info.rate);
    if (p->info.rate != t->part[0].info.rate)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has %d Hz and %s has %d; the inputs of a row need one rate",
                       source.input, p->info.rate, e->input, t->part[0].info.rate);
    status = seek_part(e, t, p, source.input, error);
    if (!status)
        status = acquire(w, t, p, &source, false, error);
    if (!status)
        status = gc_task_set_window(w, t, p, error);
    if (status)
        return status;
    if (gpuconv_ir_outputs(p->response->ir) != gpuconv_ir_outputs(t->part[0].response->ir))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: gives %d channels and %s gives %d; they cannot be added",
                       source.response, gpuconv_ir_outputs(p->response->ir), e->response,
                       gpuconv_ir_outputs(t->part[0].response->ir));
    t->response_state = index ? gc_state_join(&t->response_state, &p->response->state) : p->response->state;
    return t->early_path ? open_early(w, t, index, &source, error) : GPUCONV_OK;
}

gpuconv_status gc_task_open(const gc_worker *w, int64_t number, gc_task *t, gpuconv_error *error) {
    const gc_entry *e = &w->manifest->entry[number];
    *t = (gc_task){.entry = number, .start_time = gc_now(), .noise_state = {.size = -1}, .where = ""};
    if (e->refusal)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "line %lld: %s", (long long)e->line, e->refusal);
    const char *early = gc_entry_early(e);
    t->sources = gc_entry_sources(e);
    t->mixed = t->sources > 1 || early || gc_entry_noise(e) || gc_entry_recipe(e)->settings.level ||
               (e->extra && e->extra->start > 0);
    t->path = gc_text_of("%s/%s", w->folder, e->output);
    t->early_path = early ? gc_text_of("%s/%s", w->folder, early) : NULL;
    t->part = gc_calloc(t->sources * (early ? 2 : 1), sizeof *t->part);
    if (!t->path || (early && !t->early_path) || !t->part)
        return gc_fail_memory(error, e->output);
    t->parts = t->sources * (early ? 2 : 1);
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < t->sources && !status; i++)
        status = open_source(w, t, i, error);
    return status;
}

gpuconv_status gc_task_open_output(const gc_worker *w, gc_task *t, const char *path, int channels, int64_t frames,
                                   gc_writer **writer, gpuconv_error *error) {
    const gc_output_options wish = gc_task_options(w, t);
    gc_audio_info like = t->part[0].info;
    like.speakers = gc_ir_keeps_channels(t->part[0].response->ir) ? like.speakers : 0;
    gpuconv_status status = gc_create_parent_folders(path, error);
    if (!status)
        status = gc_writer_new(path, &wish, &like, channels, frames, writer, error);
    if (!status)
        (void)snprintf(t->note, sizeof t->note, "%s", gc_writer_note(*writer));
    return status;
}

void gc_task_report(const gc_worker *w, const gc_task *t, gpuconv_status status, const gpuconv_error *error) {
    if (status == GPUCONV_ERROR_CANCELLED && gc_flag_is_raised(w->cancel))
        return;
    gc_outcome o = {.status = status, .where = t->where, .seconds = gc_now() - t->start_time, .clipped = t->clipped};
    if (status) {
        (void)snprintf(o.reason, sizeof o.reason, "%s", error->message);
    } else {
        o.audio = (double)t->part[0].frames / t->part[0].info.rate;
        o.input = t->input_state;
        o.response = t->response_state;
        o.noise = t->noise_state;
        o.output_size = t->output_size;
        o.early_size = t->early_path ? t->early_size : -1;
        o.rate = t->part[0].info.rate;
        o.channels = gpuconv_ir_outputs(t->part[0].response->ir);
        o.frames = t->written;
        o.offset = t->offset;
        o.noise_offset = t->noise_offset;
        o.shortened = t->shortened;
    }
    (void)snprintf(o.note, sizeof o.note, "%s%s%s", t->input_note, *t->input_note && *t->note ? "; " : "", t->note);
    o.not_finite = t->not_finite;
    for (int i = 0; i < t->parts; i++)
        if (t->part[i].reader)
            o.not_finite += gc_reader_nonfinite(t->part[i].reader, NULL);
    w->report(w->context, t->entry, &o);
}

gpuconv_status gc_task_commit(gc_task *t, gc_writer *writer, bool early, gpuconv_error *error) {
    if (!early && gc_writer_nonfinite(writer, NULL) > 0) {
        t->not_finite += gc_writer_nonfinite(writer, NULL);
        (void)snprintf(t->note, sizeof t->note, "samples of the output are not finite: the input is too large");
    }
    const gpuconv_status status = gc_writer_complete(writer, early ? &t->early_size : &t->output_size, error);
    return status ? status : gc_writer_commit(writer, error);
}

/* ---- Outputs from planar floats ---- */

/* Enlarges the scratch memory. Returns false without memory. */
static bool enlarge(gc_scratch *s, int64_t bytes) {
    if (bytes > s->raw_bytes) {
        free(s->raw);
        s->raw = gc_calloc(bytes, 1);
        s->raw_bytes = s->raw ? bytes : 0;
    }
    return s->raw != NULL;
}

void gc_scratch_free(gc_scratch *s) {
    free(s->raw);
    *s = (gc_scratch){0};
}

gpuconv_status gc_store_samples(const gc_worker *w, gc_writer *writer, const void *raw, int64_t frames,
                                gpuconv_error *error) {
    const bool copied = gc_writer_is_plain(writer);
    while (copied && sem_wait(w->copy_permits) != 0)
        ; /* interrupted by a signal */
    gpuconv_status status = gc_writer_write(writer, raw, frames, error);
    if (copied)
        sem_post(w->copy_permits);
    return status;
}

/* Interleaves samples and packs them with dither. @return MEMORY */
static gpuconv_status pack_dithered(const float *const *row, int channels, int64_t frames, gc_pcm pcm, void *raw,
                                    gc_pcm_overs *overs, gpuconv_error *error) {
    gc_dither dither = gc_dither_begin(pcm, true);
    float *samples = gc_calloc(frames * channels, sizeof *samples);
    if (!samples)
        return gc_fail_memory(error, "dither");
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            samples[i * channels + c] = row[c][i];
    gc_dither_pack(&dither, samples, frames * channels, raw, overs);
    free(samples);
    return GPUCONV_OK;
}

/* The samples of one output file. */
typedef struct output {
    const char *path;
    const float *const *row;
    int channels;
    int64_t frames;
} output;

/* Creates a file and writes its samples. The caller commits and frees the writer, also after a failure. */
static gpuconv_status write_output(const gc_worker *w, gc_task *t, const output *o, gc_scratch *scratch,
                                   gc_writer **writer, gc_pcm_overs *overs, gpuconv_error *error) {
    gpuconv_status status = gc_task_open_output(w, t, o->path, o->channels, o->frames, writer, error);
    if (status)
        return status;
    const gc_pcm pcm = gc_writer_pcm(*writer);
    if (!enlarge(scratch, o->frames * o->channels * gc_pcm_bytes(pcm)))
        return gc_fail_memory(error, o->path);
    if (gc_entry_recipe(gc_task_entry(w, t))->settings.job.dither)
        status = pack_dithered(o->row, o->channels, o->frames, pcm, scratch->raw, overs, error);
    else
        gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){pcm, scratch->raw, overs}, o->row, 0, o->channels, o->frames);
    return status ? status : gc_store_samples(w, *writer, scratch->raw, o->frames, error);
}

/* Returns the first frame of a part's window. */
static void window_rows(const gc_part *p, float *const *row, int channels, const float **window) {
    for (int c = 0; c < channels; c++)
        window[c] = row[c] + p->window.skip;
}

static int64_t window_frames(const gc_part *p) {
    return p->frames + p->window.after - p->window.skip;
}

/* Returns the frames up to which the output is input, and behind which it is the tail. */
static int64_t body_frames(const gc_part *p) {
    return gc_max(0, p->frames - p->window.skip);
}

/* Adds up parts [from, from + sources). */
static gpuconv_status add_up(const gc_task *t, int from, float *const *const *rows, gc_mix *mix, gpuconv_error *error) {
    int channels = gpuconv_ir_outputs(t->part[0].response->ir);
    int64_t frames = 0;
    for (int i = 0; i < t->sources; i++) /* both outputs have the length of the first */
        frames = gc_max(frames, t->part[i].start + window_frames(&t->part[i]));
    const float **window = gc_calloc(channels, (int64_t)sizeof *window);
    gpuconv_status status =
        window ? gc_mix_new(mix, channels, frames, t->part[0].info.rate, error) : gc_fail_memory(error, "a mix");
    for (int i = from; i < from + t->sources && !status; i++) {
        window_rows(&t->part[i], rows[i], channels, window);
        gc_mix_add(mix, window, window_frames(&t->part[i]), t->part[i].start);
    }
    free((void *)window);
    return status;
}

/* Convolves frames of noise from frame `from` on, repeated as often as needed, with a response; the noise was there
 * before. *ir: the sum of all routes to each output. */
static gpuconv_status play_noise(const gc_worker *w, const gpuconv_ir *noise, int64_t from, int64_t frames,
                                 const gpuconv_ir *response, gpuconv_ir **ir, gpuconv_error *error) {
    const int64_t before = response->frames - 1;
    gpuconv_arrays *place = NULL;
    gc_mix wet = {0};
    float *signal = gc_alloc(frames + before, sizeof *signal);
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    gpuconv_status status = signal ? gc_mix_new(&wet, response->outputs, frames, (int)response->rate, error)
                                   : gc_fail_memory(error, "the noise");
    if (!status)
        status = gc_responses_take_place(w->responses, &place, error);
    job.accumulate = true;
    job.offset = before;
    for (int i = 0; i < response->routes && !status; i++) {
        const gc_route *route = &response->route[i];
        const float *x = gc_ir_plane(noise, route->input);
        int64_t at = (from - before) % noise->frames;
        at += at < 0 ? noise->frames : 0;
        for (int64_t n = 0; n < frames + before; n++, at = at + 1 < noise->frames ? at + 1 : 0)
            signal[n] = x[at];
        job.signal = gpuconv_rows_of_floats(signal, 1, frames + before);
        job.response = gpuconv_rows_of_floats((float *)gc_ir_plane(response, route->plane), 1, response->frames);
        job.output = gpuconv_rows_of_floats(wet.row[route->output], 1, frames);
        status = gpuconv_arrays_run(place, &job, NULL, 0, NULL, error);
    }
    gc_responses_return_place(w->responses, place);
    if (!status)
        status = gpuconv_ir_new((const float *const *)wet.row, wet.channels, frames, response->rate, ir, error);
    gc_mix_free(&wet);
    free(signal);
    return status;
}

/* Convolves noise with the response of the entry's noise. *wet NULL: it has none. */
static gpuconv_status reverberate(const gc_worker *w, gc_task *t, const gc_mix *mix, const gpuconv_ir *noise,
                                  int64_t from, gpuconv_ir **wet, gpuconv_error *error) {
    const char *path = gc_task_entry(w, t)->extra->noise_response;
    gc_response *response;
    bool is_new;
    *wet = NULL;
    if (!path)
        return GPUCONV_OK;
    const gc_response_request request = {.path = path,
                                         .recipe = gc_recipe_default(),
                                         .dry = -HUGE_VAL,
                                         .rate = mix->rate,
                                         .channels = noise->planes,
                                         .shared = !gc_is_room(path)};
    gpuconv_status status = gc_responses_acquire(w->responses, &request, &response, &is_new, error);
    if (status)
        return status;
    t->noise_state = gc_state_join(&t->noise_state, &response->state);
    status = play_noise(w, noise, from, mix->frames, response->ir, wet, error);
    gc_responses_release(w->responses, response);
    return status;
}

/* Adds the entry's noise. */
static gpuconv_status add_noise(const gc_worker *w, gc_task *t, gc_mix *mix, gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const char *path = gc_entry_noise(e);
    gpuconv_error inner = {0};
    gc_response *noise;
    gpuconv_ir *wet;
    bool is_new, silent = false;
    if (!path)
        return GPUCONV_OK;
    const gc_response_request request = {
        .path = path, .recipe = gc_recipe_default(), .rate = mix->rate, .shared = true, .kind = GC_RESPONSE_NOISE};
    gpuconv_status status = gc_responses_acquire(w->responses, &request, &noise, &is_new, error);
    if (status)
        return status;
    t->noise_state = noise->state;
    int64_t from = (int64_t)llrint(e->extra->noise_offset * mix->rate);
    if (e->extra->noise_random) {
        uint64_t state = e->seed ^ UINT64_C(0x9ddfea08eb382d69);
        from = (int64_t)(gc_random_bits(&state) % (uint64_t)noise->ir->frames);
    }
    from %= noise->ir->frames;
    t->noise_offset = (double)from / mix->rate;
    status = reverberate(w, t, mix, noise->ir, from, &wet, &inner);
    if (!status)
        status = gc_mix_add_noise(mix, wet ? wet : noise->ir, wet ? 0 : from, e->extra->snr, &silent, &inner);
    gpuconv_ir_free(wet);
    gc_responses_release(w->responses, noise);
    if (status)
        return gc_fail(error, status, "%s: %s", path, inner.message);
    if (silent)
        (void)snprintf(t->note, sizeof t->note, "signal or noise is silent; no noise was added");
    return GPUCONV_OK;
}

/* Returns the mean power of all inputs. */
static double input_power(const gc_task *t) {
    double sum = 0;
    for (int i = 0; i < t->sources; i++)
        sum += t->part[i].power;
    return sum;
}

/* Makes the mix: sum, end of the tail, noise, level and gain. *factor: of level and gain. */
static gpuconv_status make_mix(const gc_worker *w, gc_task *t, float *const *const *rows, gc_mix *mix, double *factor,
                               gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gc_recipe *r = gc_entry_recipe(e);
    gpuconv_error inner = {0};
    gpuconv_status status = add_up(t, 0, rows, mix, error);
    *factor = 1;
    if (!status && t->part[0].window.floor > 0) {
        int64_t body = 0;
        for (int i = 0; i < t->sources; i++)
            body = gc_max(body, t->part[i].start + body_frames(&t->part[i]));
        mix->frames = gc_audible_frames((const float *const *)mix->row, mix->channels, mix->frames, body,
                                        t->part[0].window.floor);
    }
    if (!status)
        status = add_noise(w, t, mix, error);
    if (!status && r->settings.level) {
        status = gc_mix_find_level(mix, r->settings.level, r->settings.level_db, input_power(t), factor, &inner);
        *factor *= pow(10, e->gain / 20);
        if (status)
            gc_fail(error, status, "%s: %s", e->output, inner.message);
    }
    if (!status)
        gc_mix_scale(mix, *factor);
    return status;
}

/* Writes and commits the early reflections, with the level of the output. */
static gpuconv_status store_early(const gc_worker *w, gc_task *t, float *const *const *rows, const gc_mix *whole,
                                  double factor, gc_scratch *scratch, gpuconv_error *error) {
    gc_mix mix = {0};
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    gpuconv_status status = add_up(t, t->sources, rows, &mix, error);
    if (!status) {
        gc_mix_scale(&mix, factor);
        const output o = {t->early_path, (const float *const *)mix.row, mix.channels, whole->frames};
        status = write_output(w, t, &o, scratch, &writer, &overs, error);
    }
    if (!status)
        status = gc_task_commit(t, writer, true, error);
    gc_writer_free(writer);
    gc_mix_free(&mix);
    return status;
}

static gpuconv_status store_mixed(const gc_worker *w, gc_task *t, float *const *const *rows, gc_scratch *scratch,
                                  gpuconv_error *error) {
    gc_mix mix = {0};
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    double factor;
    char note[sizeof t->note];
    gpuconv_status status = make_mix(w, t, rows, &mix, &factor, error);
    (void)snprintf(note, sizeof note, "%s", t->note);
    const output o = {t->path, (const float *const *)mix.row, mix.channels, mix.frames};
    if (!status)
        status = write_output(w, t, &o, scratch, &writer, &overs, error);
    if (!*note)
        (void)snprintf(note, sizeof note, "%s", t->note);
    if (!status && t->early_path) /* has its name only if the first output is complete */
        status = store_early(w, t, rows, &mix, factor, scratch, error);
    (void)snprintf(t->note, sizeof t->note, "%s", note);
    t->written = mix.frames;
    if (!status)
        status = gc_task_commit(t, writer, false, error);
    gc_writer_free(writer);
    gc_mix_free(&mix);
    t->clipped = overs.clipped;
    return status;
}

gpuconv_status gc_store_rows(const gc_worker *w, gc_task *t, float *const *const *rows, gc_scratch *scratch,
                             gpuconv_error *error) {
    if (t->mixed)
        return store_mixed(w, t, rows, scratch, error);
    const gc_part *p = &t->part[0];
    const int channels = gpuconv_ir_outputs(p->response->ir);
    gc_writer *writer = NULL;
    gc_pcm_overs overs = {0};
    const float **window = gc_calloc(channels, (int64_t)sizeof *window);
    if (!window)
        return gc_fail_memory(error, t->path);
    window_rows(p, rows[0], channels, window);
    output o = {t->path, window, channels, window_frames(p)};
    if (p->window.floor > 0)
        o.frames = gc_audible_frames(window, channels, o.frames, body_frames(p), p->window.floor);
    gpuconv_status status = o.frames > 0
                                ? write_output(w, t, &o, scratch, &writer, &overs, error)
                                : gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: nothing is left to write", t->path);
    t->written = o.frames;
    if (!status)
        status = gc_task_commit(t, writer, false, error);
    gc_writer_free(writer);
    free((void *)window);
    t->clipped = overs.clipped;
    return status;
}
