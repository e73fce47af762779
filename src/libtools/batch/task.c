/* Opens, reports and commits the files of one manifest entry. */
#include "task.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/ir/object.h"
#include "shard_in.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const gc_entry *gc_task_entry(const gc_worker *w, const gc_task *t) {
    return &w->manifest->entry[t->entry];
}

gc_output_options gc_task_options(const gc_worker *w, const gc_task *t) {
    const gc_recipe *r = gc_entry_recipe(gc_task_entry(w, t));
    return (gc_output_options){.format = r->format,
                               .encoding = r->encoding,
                               .compression = r->compression,
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
    const gc_recipe *r = gc_entry_recipe(e);
    const int64_t tail = p->response->ir->frames - 1, lead = p->response->ir->lead;
    const double kept = (double)lead + r->tail * p->info.rate;
    p->skip = r->mode == GPUCONV_MODE_FULL ? lead : r->mode == GPUCONV_MODE_SAME ? tail / 2 : tail;
    p->after = r->mode == GPUCONV_MODE_VALID  ? 0
               : r->mode == GPUCONV_MODE_SAME ? tail / 2
               : kept < (double)tail          ? (int64_t)llrint(kept)
                                              : tail;
    if (p->frames >= 0 && p->frames + p->after <= p->skip)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                       "%s: of %lld frames none are valid with a response of %lld frames", e->input,
                       (long long)p->frames, (long long)tail + 1);
    return GPUCONV_OK;
}

/* Acquires the response of a part. */
static gpuconv_status acquire(const gc_worker *w, const gc_task *t, gc_part *p, const gc_source *source, bool early,
                              gpuconv_error *error) {
    const gc_entry *e = gc_task_entry(w, t);
    const gc_recipe *r = gc_entry_recipe(e);
    const gc_response_request request = {.path = source->response,
                                         .recipe = r,
                                         .gain = source->gain + (r->level ? 0 : e->gain),
                                         .wet = e->wet,
                                         .dry = e->dry,
                                         .rate = p->info.rate,
                                         .channels = p->info.channels,
                                         .shared = e->shared || early || t->sources > 1,
                                         .kind = early ? GC_RESPONSE_EARLY : GC_RESPONSE_WHOLE};
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
        early->after = gc_min(p->after, early->response->ir->frames - 1);
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
    t->mixed =
        t->sources > 1 || early || gc_entry_noise(e) || gc_entry_recipe(e)->level || (e->extra && e->extra->start > 0);
    t->path = gc_path_in(w->folder, e->output);
    t->early_path = early ? gc_path_in(w->folder, early) : NULL;
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

/* Stores the size of a complete file before it gets its name. */
static gpuconv_status store_size(void *size, int fd, gpuconv_error *error) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "an output: %s", strerror(errno));
    *(int64_t *)size = st.st_size;
    return GPUCONV_OK;
}

gpuconv_status gc_task_commit(gc_task *t, gc_writer *writer, bool early, gpuconv_error *error) {
    if (!early && gc_writer_nonfinite(writer, NULL) > 0) {
        t->not_finite += gc_writer_nonfinite(writer, NULL);
        (void)snprintf(t->note, sizeof t->note, "samples of the output are not finite: the input is too large");
    }
    return gc_writer_commit_checked(writer, store_size, early ? &t->early_size : &t->output_size, error);
}
