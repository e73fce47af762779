/*
 * Distribution of entries and collection of outcomes. Workers of rank 0 take entries from its list; other ranks receive
 * portions of it in answer to their reports. Outcomes are lines of results.jsonl, which rank 0 writes.
 */
#include "batch_state.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gc_batch_has_ranks(const gc_batch_state *s) {
    return s->batch->ranks && s->batch->ranks->size > 1;
}

bool gc_batch_is_first_rank(const gc_batch_state *s) {
    return !gc_batch_has_ranks(s) || s->batch->ranks->rank == 0;
}

void gc_batch_fail(gc_batch_state *s, gpuconv_status status, const gpuconv_error *error) {
    pthread_mutex_lock(&s->lock);
    if (!s->status) {
        s->status = status;
        s->error = *error;
    }
    gc_flag_raise(&s->stop);
    pthread_mutex_unlock(&s->lock);
}

gpuconv_status gc_batch_lock_folder(gc_batch_state *s, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    char text[600];
    int unsupported;
    gpuconv_status status =
        gc_folder_lock_new(b->folder, gc_batch_is_first_rank(s), &s->folder_lock, &unsupported, error);
    if (!status && unsupported && b->note && gc_batch_is_first_rank(s)) {
        (void)snprintf(text, sizeof text, "%.400s: cannot be locked (%s); start no other batch into it", b->folder,
                       strerror(unsupported));
        b->note(b->context, text);
    }
    return status;
}

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

static void add_to_progress(gc_batch_state *s, const gc_ranks_report *report) {
    s->progress.done += report->done;
    s->progress.failed += report->failed;
    s->progress.clipped += report->clipped;
    s->progress.audio += report->audio;
}

/* Writes lines to results.jsonl, or on other ranks appends them to the next report. Requires the lock. */
static gpuconv_status store_lines(gc_batch_state *s, const char *lines, size_t bytes, gpuconv_error *error) {
    if (gc_batch_is_first_rank(s))
        return gc_results_write(s->results, lines, bytes, error);
    if (s->unsent.bytes + bytes > s->unsent_capacity) {
        size_t capacity = 2 * (s->unsent.bytes + bytes);
        char *larger = realloc(s->unsent_lines, capacity);
        if (!larger)
            return gc_fail_memory(error, "results");
        s->unsent_lines = larger;
        s->unsent_capacity = capacity;
    }
    memcpy(s->unsent_lines + s->unsent.bytes, lines, bytes);
    s->unsent.bytes += bytes;
    return GPUCONV_OK;
}

static void count_file(gc_batch_files *f, int64_t entry, int64_t samples) {
    if (samples > 0 && (f->files++ == 0 || entry < f->first))
        f->first = entry;
}

void gc_batch_record(gc_batch_state *s, int device, int64_t entry, const gc_outcome *o) {
    gpuconv_error error = {0};
    char *line = gc_result_line(&s->batch->manifest->entry[entry], o);
    gc_ranks_report one = {
        .done = o->status == GPUCONV_OK, .failed = o->status != GPUCONV_OK, .clipped = o->clipped, .audio = o->audio};
    pthread_mutex_lock(&s->lock);
    gpuconv_status status = line ? store_lines(s, line, strlen(line), &error) : gc_fail_memory(&error, "results");
    add_to_progress(s, &one);
    count_file(&s->clipped, entry, o->clipped);
    count_file(&s->not_finite, entry, o->not_finite);
    count_file(&s->shortened, entry, o->shortened);
    if (o->status)
        gc_failures_add(&s->failures, o->reason);
    s->unsent.done += one.done;
    s->unsent.failed += one.failed;
    s->unsent.clipped += one.clipped;
    s->unsent.audio += one.audio;
    if (s->devices > 0)
        s->progress.device_audio[device] += o->audio;
    pthread_mutex_unlock(&s->lock);
    free(line);
    if (!status && s->packer)
        status = gc_packer_end(s->packer, entry, o->status != GPUCONV_OK, &error);
    if (status)
        gc_batch_fail(s, status, &error);
}

/* Records an entry that is refused in the manifest. */
static void record_refused(gc_batch_state *s, int64_t entry) {
    const gc_entry *e = &s->batch->manifest->entry[entry];
    gc_outcome o = {.status = GPUCONV_ERROR_ARGUMENT, .where = ""};
    (void)snprintf(o.reason, sizeof o.reason, "line %lld: %s", (long long)e->line, e->refusal);
    gc_batch_record(s, 0, entry, &o);
}

/* ---- Between ranks ----------------------------------------------------------------------------------------------- */

/* Takes up to `count` entries of this rank's list. */
static int take_entries(gc_batch_state *s, int64_t *entries, int count) {
    int n = 0;
    pthread_mutex_lock(&s->lock);
    const bool ends = gc_flag_is_raised(&s->stop) || (s->batch->fail_fast && s->progress.failed > 0);
    while (n < count && s->todo_next < s->todo_count && !ends)
        entries[n++] = s->todo[s->todo_next++];
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Takes a portion of the list for another rank: an eighth of its share of the remaining entries, so that all ranks
 * finish at about the same time. Rank 0 records refused entries itself, because only its manifest has all refusals. */
static int take_for_rank(void *context, int64_t *entries) {
    gc_batch_state *s = context;
    int n = 0;
    pthread_mutex_lock(&s->lock);
    int64_t portion = (s->todo_count - s->todo_next) / (8 * (int64_t)s->batch->ranks->size);
    pthread_mutex_unlock(&s->lock);
    for (portion = gc_max(1, gc_min(GC_RANKS_ENTRIES, portion)); n < portion && take_entries(s, &entries[n], 1);)
        if (s->batch->manifest->entry[entries[n]].refusal)
            record_refused(s, entries[n]);
        else
            n++;
    return n;
}

/* Stores the outcomes that another rank reports. */
static void accept_report(void *context, const gc_ranks_report *report) {
    gc_batch_state *s = context;
    gpuconv_error error = {0};
    pthread_mutex_lock(&s->lock);
    add_to_progress(s, report);
    if (report->failed > 0)
        gc_failures_add_lines(&s->failures, report->lines, report->bytes);
    gpuconv_status status = gc_results_write(s->results, report->lines, report->bytes, &error);
    pthread_mutex_unlock(&s->lock);
    if (status)
        gc_batch_fail(s, status, &error);
}

bool gc_batch_serve_ranks(gc_batch_state *s) {
    return s->batch->ranks->serve(take_for_rank, accept_report, s);
}

/* Sends this rank's unsent outcomes to rank 0. @return as gc_ranks.request; -1: no answer, and the batch has failed */
static int send_report(gc_batch_state *s, bool leaving, int64_t *entries) {
    pthread_mutex_lock(&s->lock);
    gc_ranks_report report = s->unsent;
    char *lines = s->unsent_lines;
    s->unsent = (gc_ranks_report){0};
    s->unsent_lines = NULL;
    s->unsent_capacity = 0;
    pthread_mutex_unlock(&s->lock);
    report.lines = lines;
    report.leaving = leaving;
    int n = s->batch->ranks->request(&report, entries);
    free(lines);
    if (n < 0) {
        gpuconv_error error = {.status = GPUCONV_ERROR_STATE, .message = "the first rank does not answer"};
        gc_batch_fail(s, GPUCONV_ERROR_STATE, &error);
    }
    return n;
}

/* Replaces this rank's list by a portion from rank 0, which has locked the folder before it answers. @return false:
 * there are no more entries, or the batch has failed */
static bool request_entries(gc_batch_state *s) {
    int64_t entries[GC_RANKS_ENTRIES];
    gpuconv_error error = {0};
    int n = send_report(s, false, entries);
    if (n <= 0)
        return false;
    if (!s->folder_lock && gc_batch_lock_folder(s, &error)) {
        gc_batch_fail(s, error.status, &error);
        return false;
    }
    pthread_mutex_lock(&s->lock);
    memcpy(s->todo, entries, (size_t)n * sizeof *entries);
    s->todo_next = 0;
    s->todo_count = n;
    pthread_mutex_unlock(&s->lock);
    return true;
}

void gc_batch_leave_ranks(gc_batch_state *s) {
    int64_t unused[GC_RANKS_ENTRIES];
    (void)send_report(s, true, unused);
}

bool gc_batch_next(gc_batch_state *s, int64_t *entry) {
    if (take_entries(s, entry, 1))
        return true;
    if (gc_batch_is_first_rank(s))
        return false;
    pthread_mutex_lock(&s->request_lock); /* one worker asks; the others find the entries that it received */
    bool found = take_entries(s, entry, 1) > 0;
    if (!found && !s->exhausted && !gc_flag_is_raised(&s->stop)) {
        s->exhausted = !request_entries(s);
        found = take_entries(s, entry, 1) > 0;
    }
    pthread_mutex_unlock(&s->request_lock);
    return found;
}
