/* Opens, reports and commits the files of one manifest entry. */
#include "task.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/ir/object.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void gc_task_close(const gc_worker *w, gc_task *t) {
    gc_reader_free(t->reader);
    if (t->response)
        gc_responses_release(w->responses, t->response);
    free(t->path);
    *t = (gc_task){0};
}

/* Seeks to the part of the input that the entry selects, and sets the number of frames to read. */
static gpuconv_status seek_part(const gc_entry *e, gc_task *t, gpuconv_error *error) {
    double rate = t->info.rate;
    int64_t all = t->info.frames, want = e->length < 0 ? -1 : (int64_t)llrint(e->length * rate);
    int64_t from = (int64_t)llrint(e->offset * rate);
    if (e->random_offset) {
        uint64_t state = e->seed;
        int64_t spare = all < 0 ? 0 : all - want;
        from = spare > 0 ? (int64_t)(gc_random_bits(&state) % (uint64_t)(spare + 1)) : 0;
    }
    if (want == 0 || (all >= 0 && from >= all && from > 0))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: no samples from %g s on for a length of %g s", e->input,
                       e->offset, e->length);
    if (from > 0) {
        gpuconv_status status = gc_reader_seek(t->reader, from, error);
        if (status)
            return status;
    }
    t->frames = all < 0 ? want : want < 0 ? all - from : gc_min(want, all - from);
    return GPUCONV_OK;
}

static bool is_same_file(const gc_state *a, const gc_state *b) {
    return a->size >= 0 && b->size >= 0 && a->device == b->device && a->inode == b->inode;
}

gpuconv_status gc_task_open(const gc_worker *w, int64_t number, gc_task *t, gpuconv_error *error) {
    const gc_entry *e = &w->manifest->entry[number];
    *t = (gc_task){.entry = number, .start_time = gc_now()};
    if (e->refusal)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "line %lld: %s", (long long)e->line, e->refusal);
    size_t room = strlen(w->folder) + strlen(e->output) + 2;
    t->path = gc_calloc((int64_t)room, 1);
    if (!t->path)
        return gc_fail_memory(error, e->output);
    (void)snprintf(t->path, room, "%s/%s", w->folder, e->output);
    t->input_state = gc_state_of_path(e->input);
    const gc_input_options input = {.cancel = w->cancel};
    gpuconv_status status = gc_reader_open(e->input, &input, &t->reader, error);
    if (status)
        return status;
    t->info = *gc_reader_info(t->reader);
    status = seek_part(e, t, error);
    if (status)
        return status;
    gc_response_request request = {e->response, e->gain, e->wet, e->dry, t->info.rate, t->info.channels, e->shared};
    status = gc_responses_acquire(w->responses, &request, &t->response, &t->response_is_new, error);
    if (!status) {
        gc_state existing = gc_state_of_path(t->path);
        t->in_place = is_same_file(&existing, &t->input_state) || is_same_file(&existing, &t->response->state);
    }
    return status;
}

gpuconv_status gc_task_open_output(const gc_worker *w, gc_task *t, gc_writer **writer, gpuconv_error *error) {
    const gpuconv_ir *ir = t->response->ir;
    gpuconv_status status = gc_create_parent_folders(t->path, error);
    int64_t frames = t->frames < 0 ? -1 : t->frames + ir->frames - 1 - ir->lead;
    const gc_output_options wish = {.path_kind = GC_OUTPUT_PROGRAM_PATH, .cancel = w->cancel};
    if (!status)
        status = gc_writer_new(t->path, &wish, &t->info, ir->outputs, frames, writer, error);
    if (!status)
        (void)snprintf(t->note, sizeof t->note, "%s", gc_writer_note(*writer));
    return status;
}

static gc_outcome outcome_of(const gc_task *t, const char *where, int64_t clipped) {
    return (gc_outcome){.where = where,
                        .seconds = gc_now() - t->start_time,
                        .audio = (double)t->frames / t->info.rate,
                        .clipped = clipped,
                        .input = t->input_state,
                        .response = t->response->state,
                        .output = t->output_state,
                        .in_place = t->in_place};
}

void gc_task_report(const gc_worker *w, const gc_task *t, gpuconv_status status, const gpuconv_error *error,
                    const char *where, int64_t clipped) {
    if (status == GPUCONV_ERROR_CANCELLED && gc_flag_is_raised(w->cancel))
        return;
    gc_outcome o = {.status = status, .where = where, .seconds = gc_now() - t->start_time, .clipped = clipped};
    if (status)
        (void)snprintf(o.reason, sizeof o.reason, "%s", error->message);
    else
        o = outcome_of(t, where, clipped);
    (void)snprintf(o.note, sizeof o.note, "%s", t->note);
    o.not_finite = t->reader ? gc_reader_nonfinite(t->reader, NULL) : t->not_finite;
    w->report(w->context, t->entry, &o);
}

typedef struct commit_context {
    const gc_worker *w;
    gc_task *t;
    const char *where;
    int64_t clipped;
} commit_context;

/* Stores the state of the complete output before it gets its name. If it replaces its own input or response, announces
 * the replacement first; history.h has the protocol. */
static gpuconv_status before_rename(void *context, int fd, gpuconv_error *error) {
    const commit_context *o = context;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", o->t->path, strerror(errno));
    o->t->output_state = gc_state_of(&st);
    if (!o->t->in_place)
        return GPUCONV_OK;
    if (!gc_state_digest(fd, &o->t->output_state))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", o->t->path, strerror(errno));
    gc_outcome outcome = outcome_of(o->t, o->where, o->clipped);
    outcome.replacing = true;
    return o->w->announce_replacement(o->w->context, o->t->entry, &outcome, error);
}

gpuconv_status gc_task_commit(const gc_worker *w, gc_task *t, gc_writer *writer, const char *where, int64_t clipped,
                              gpuconv_error *error) {
    commit_context o = {w, t, where, clipped};
    return gc_writer_commit_checked(writer, before_rename, &o, error);
}
