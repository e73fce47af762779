/*
 * Who does what: workers take the next entry of a list, or what rank 0 hands to this rank; the caller's thread keeps
 * watch and, on rank 0 of several, a thread answers the others.
 */
#include "batch.h"

#include "history.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/subnormal.h"
#include "libgpuconv/engine/backends.h"
#include "targets.h"
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t responses_kept = INT64_C(256) << 20; /* bytes */
/* Entries a core, when nobody says where: from so many of a few seconds each on, a GPU that must first wake is done
 * sooner, and every further one wants as many more, since they wake one after the other. */
static const int64_t worth_a_gpu = 1280;
/* Workers that may copy samples into files at a time: 64 that do are a quarter slower than 24, because they wait for
 * each other inside the system. */
enum { COPYING_MOST = 24 };

typedef struct run {
    const gc_batch *batch;
    const gc_batch_backend *backend;
    int devices, workers;
    int device[GC_BATCH_DEVICES];
    gc_responses *responses;
    gc_results *results; /* rank 0's */
    double began;
    volatile int stop; /* what workers look at: cancelled, or failed for good */
    sem_t copying;     /* how many more may */

    pthread_mutex_t lock, asking;
    pthread_cond_t changed;
    /* under `lock`: */
    int64_t *todo, count, at;
    int active, laneless;
    bool missing[GC_BATCH_DEVICES]; /* of `device`: somebody was told */
    gc_batch_progress seen;
    gc_ranks_news news; /* not rank 0: not yet told */
    char *lines;
    size_t room;
    gpuconv_status status;
    gpuconv_error error;
    /* under `asking`: */
    bool no_more;
} run;

typedef struct hand {
    run *r;
    int device; /* index into r->device */
    pthread_t thread;
} hand;

/* The first failure of the batch itself ends it. */
static void give_up(run *r, gpuconv_status status, const gpuconv_error *error) {
    pthread_mutex_lock(&r->lock);
    if (!r->status) {
        r->status = status;
        r->error = *error;
    }
    r->stop = 1;
    pthread_mutex_unlock(&r->lock);
}

static bool others(const run *r) {
    return r->batch->ranks && r->batch->ranks->size > 1;
}

static bool first_rank(const run *r) {
    return !others(r) || r->batch->ranks->rank == 0;
}

/* ---- Handing out ------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static bool over(const run *r) {
    return r->stop || (r->batch->fail_fast && r->seen.failed > 0);
}

static int take(run *r, int64_t *entries, int most) {
    int n = 0;
    pthread_mutex_lock(&r->lock);
    while (n < most && r->at < r->count && !over(r))
        entries[n++] = r->todo[r->at++];
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void tell_from(run *r, int device, int64_t entry, const gc_outcome *o);

static void tell_refused(run *r, int64_t entry) {
    const gc_entry *e = &r->batch->manifest->entry[entry];
    gc_outcome o = {.status = GPUCONV_ERROR_ARGUMENT, .where = ""};
    (void)snprintf(o.reason, sizeof o.reason, "line %lld: %s", (long long)e->line, e->wrong);
    tell_from(r, 0, entry, &o);
}

/* Takes entries for another rank, few enough that no rank waits long for the last ones. Rank 0 alone knows which
 * entries it has refused, so it tells these itself. */
static int take_for_rank(void *context, int64_t *entries) {
    run *r = context;
    int n = 0;
    pthread_mutex_lock(&r->lock);
    int64_t fair = (r->count - r->at) / (8 * (int64_t)r->batch->ranks->size);
    pthread_mutex_unlock(&r->lock);
    for (fair = gc_max(1, gc_min(GC_RANKS_ENTRIES, fair)); n < fair && take(r, &entries[n], 1);)
        if (r->batch->manifest->entry[entries[n]].wrong)
            tell_refused(r, entries[n]);
        else
            n++;
    return n;
}

/* Sends this rank's news to rank 0. @return what the answer counts; -1: no answer */
static int send_news(run *r, bool leaving, bool telling, int64_t *entries) {
    pthread_mutex_lock(&r->lock);
    gc_ranks_news news = r->news;
    char *lines = r->lines;
    r->news = (gc_ranks_news){0};
    r->lines = NULL;
    r->room = 0;
    pthread_mutex_unlock(&r->lock);
    news.lines = lines;
    news.leaving = leaving;
    news.telling = telling;
    int n = r->batch->ranks->ask(&news, entries);
    free(lines);
    if (n < 0) {
        gpuconv_error lost = {.status = GPUCONV_ERROR_STATE, .message = "the first rank does not answer"};
        give_up(r, GPUCONV_ERROR_STATE, &lost);
    }
    return n;
}

/* Another rank's list is what rank 0 gave it last. */
static bool ask_for_more(run *r, bool leaving) {
    int64_t entries[GC_RANKS_ENTRIES];
    int n = send_news(r, leaving, false, entries);
    if (n <= 0)
        return false;
    pthread_mutex_lock(&r->lock);
    memcpy(r->todo, entries, (size_t)n * sizeof *entries);
    r->at = 0;
    r->count = n;
    pthread_mutex_unlock(&r->lock);
    return true;
}

static bool next(void *context, int64_t *entry) {
    run *r = context;
    if (take(r, entry, 1))
        return true;
    if (first_rank(r))
        return false;
    pthread_mutex_lock(&r->asking); /* one asks, the others find what came */
    bool found = take(r, entry, 1) > 0;
    if (!found && !r->no_more && !r->stop) {
        r->no_more = !ask_for_more(r, false);
        found = take(r, entry, 1) > 0;
    }
    pthread_mutex_unlock(&r->asking);
    return found;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static gpuconv_status keep_lines(run *r, const char *lines, size_t bytes, gpuconv_error *error) {
    if (first_rank(r))
        return gc_results_write(r->results, lines, bytes, error);
    if (r->news.bytes + bytes > r->room) {
        size_t room = 2 * (r->news.bytes + bytes);
        char *larger = realloc(r->lines, room);
        if (!larger)
            return gc_fail_memory(error, "results");
        r->lines = larger;
        r->room = room;
    }
    memcpy(r->lines + r->news.bytes, lines, bytes);
    r->news.bytes += bytes;
    return GPUCONV_OK;
}

static void add_up(run *r, const gc_ranks_news *news) {
    r->seen.done += news->done;
    r->seen.failed += news->failed;
    r->seen.clipped += news->clipped;
    r->seen.audio += news->audio;
}

static void tell_from(run *r, int device, int64_t entry, const gc_outcome *o) {
    gpuconv_error error = {0};
    char *line = gc_result_line(&r->batch->manifest->entry[entry], o);
    gc_ranks_news one = {
        .done = o->status == GPUCONV_OK, .failed = o->status != GPUCONV_OK, .clipped = o->clipped, .audio = o->audio};
    pthread_mutex_lock(&r->lock);
    gpuconv_status status = line ? keep_lines(r, line, strlen(line), &error) : gc_fail_memory(&error, "results");
    add_up(r, &one);
    r->news.done += one.done;
    r->news.failed += one.failed;
    r->news.clipped += one.clipped;
    r->news.audio += one.audio;
    if (r->devices > 0)
        r->seen.device_audio[device] += o->audio;
    pthread_mutex_unlock(&r->lock);
    free(line);
    if (status)
        give_up(r, status, &error);
}

static void tell(void *context, int64_t entry, const gc_outcome *o) {
    hand *h = context;
    tell_from(h->r, h->device, entry, o);
}

/* Keeps the line that says what is about to replace an input, before it does. Another rank waits until rank 0 has it.
 */
static gpuconv_status replace(void *context, int64_t entry, const gc_outcome *o, gpuconv_error *error) {
    run *r = ((hand *)context)->r;
    int64_t unused[GC_RANKS_ENTRIES];
    char *line = gc_result_line(&r->batch->manifest->entry[entry], o);
    if (!line)
        return gc_fail_memory(error, "results");
    if (!first_rank(r))
        pthread_mutex_lock(&r->asking);
    pthread_mutex_lock(&r->lock);
    gpuconv_status status = keep_lines(r, line, strlen(line), error);
    pthread_mutex_unlock(&r->lock);
    if (!first_rank(r)) {
        if (!status && send_news(r, false, true, unused) != 1)
            status = gc_fail(error, GPUCONV_ERROR_STATE, "%s: the first rank could not write results.jsonl",
                             r->batch->manifest->entry[entry].output);
        pthread_mutex_unlock(&r->asking);
    }
    free(line);
    return status;
}

static bool next_of_hand(void *context, int64_t *entry) {
    return next(((hand *)context)->r, entry);
}

/* What another rank brings. */
static bool accept_news(void *context, const gc_ranks_news *news) {
    run *r = context;
    gpuconv_error error = {0};
    pthread_mutex_lock(&r->lock);
    add_up(r, news);
    gpuconv_status status = gc_results_write(r->results, news->lines, news->bytes, &error);
    pthread_mutex_unlock(&r->lock);
    if (status)
        give_up(r, status, &error);
    return status == GPUCONV_OK;
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void leave(run *r) {
    pthread_mutex_lock(&r->lock);
    r->active--;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* A worker that has no lane, for want of memory or because its device cannot be had, leaves its part to the others; the
 * last one has nobody to leave it to. */
static bool leave_to_others(hand *h, const gpuconv_error *error) {
    run *r = h->r;
    pthread_mutex_lock(&r->lock);
    bool others_there = ++r->laneless < r->workers;
    bool news = others_there && error->status == GPUCONV_ERROR_DEVICE && !r->missing[h->device];
    if (news) {
        r->missing[h->device] = true;
        if (r->batch->note) {
            char text[600];
            (void)snprintf(text, sizeof text, "not used: %s", error->message);
            r->batch->note(r->batch->context, text);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return others_there;
}

static void *work(void *argument) {
    hand *h = argument;
    run *r = h->r;
    gpuconv_error error = {0};
    gc_worker w = {.manifest = r->batch->manifest,
                   .responses = r->responses,
                   .folder = r->batch->folder,
                   .backend = r->backend,
                   .devices = r->devices,
                   .device = r->devices > 0 ? r->device[h->device] : 0,
                   .cancel = &r->stop,
                   .copying = &r->copying,
                   .next = next_of_hand,
                   .tell = tell,
                   .replace = replace,
                   .context = h};
    bool began;
    gc_flush_subnormals();
    gpuconv_cancel_set(&r->stop);
    gpuconv_status status = gc_work(&w, &began, &error);
    if (status && (began || !leave_to_others(h, &error)))
        give_up(r, status, &error);
    leave(r);
    return NULL;
}

static void *answer(void *argument) {
    run *r = argument;
    if (!r->batch->ranks->serve(take_for_rank, accept_news, r)) {
        gpuconv_error lost = {.status = GPUCONV_ERROR_STATE, .message = "another rank was lost"};
        give_up(r, GPUCONV_ERROR_STATE, &lost);
    }
    leave(r);
    return NULL;
}

static void watch(run *r) {
    const gc_batch *b = r->batch;
    pthread_mutex_lock(&r->lock);
    while (r->active > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
        if (b->cancel && *b->cancel)
            r->stop = 1;
        r->seen.seconds = gc_now() - r->began;
        gc_batch_progress now = r->seen;
        pthread_mutex_unlock(&r->lock);
        if (b->progress)
            b->progress(b->context, &now);
        pthread_mutex_lock(&r->lock);
    }
    r->seen.seconds = gc_now() - r->began;
    pthread_mutex_unlock(&r->lock);
}

static gpuconv_status run_threads(run *r, gpuconv_error *error) {
    bool server = others(r) && first_rank(r), serving = false;
    pthread_t serving_thread;
    int started = 0;
    hand *hands = gc_calloc(r->workers, sizeof *hands);
    if (!hands)
        return gc_fail_memory(error, "workers");
    r->active = r->workers + server;
    for (; started < r->workers; started++) {
        hands[started] = (hand){r, r->devices > 0 ? started % r->devices : 0, 0};
        if (pthread_create(&hands[started].thread, NULL, work, &hands[started]) != 0)
            break;
    }
    if (server)
        serving = pthread_create(&serving_thread, NULL, answer, r) == 0;
    bool short_of_threads = started < r->workers || serving != server;
    if (short_of_threads) {
        gpuconv_error none = {.status = GPUCONV_ERROR_MEMORY, .message = "no thread to be had for a batch"};
        give_up(r, GPUCONV_ERROR_MEMORY, &none);
        pthread_mutex_lock(&r->lock);
        r->active -= r->workers - started + (server && !serving);
        pthread_mutex_unlock(&r->lock);
    }
    watch(r);
    for (int i = 0; i < started; i++)
        pthread_join(hands[i].thread, NULL);
    if (serving)
        pthread_join(serving_thread, NULL);
    if (!first_rank(r))
        (void)ask_for_more(r, true);
    free(hands);
    if (r->status) {
        *error = r->error;
        return r->status;
    }
    if (r->batch->cancel && *r->batch->cancel)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted; --resume goes on");
    return GPUCONV_OK;
}

/* ---- Before ------------------------------------------------------------------------------------------------------ */

/* The devices that were asked for, or up to `most`. The first is woken, so that a machine whose GPUs cannot be had is
 * known at once; the others wake one after the other while it works. *why: there are none to be had. */
static gpuconv_status take_devices(run *r, int64_t most, gpuconv_error *why, gpuconv_error *error) {
    const gc_batch *b = r->batch;
    const gc_batch_backend *gpu = gc_backend_find(GPUCONV_BACKEND_CUDA)->batch;
    int found = gpu->devices(why), count = found == 0 ? 0 : b->device ? b->devices : (int)gc_min(found, most);
    count = (int)gc_min(count, GC_BATCH_DEVICES);
    for (int i = 0; i < count; i++) {
        r->device[i] = b->device ? b->device[i] : i;
        if (r->device[i] < 0 || r->device[i] >= found)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d, only 0 to %d", r->device[i],
                           found - 1);
        r->seen.device[i] = r->device[i];
    }
    if (count == 0 || gpu->wake(r->device[0], why) != GPUCONV_OK)
        return GPUCONV_OK;
    r->backend = gpu;
    r->devices = r->seen.devices = count;
    return GPUCONV_OK;
}

static gpuconv_status choose_processors(run *r, gpuconv_error *error) {
    const gc_batch *b = r->batch;
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK;
    r->backend = gc_backend_find(GPUCONV_BACKEND_CPU)->batch;
    r->workers = b->workers > 0 ? b->workers : gc_processor_count();
    const int64_t paying = b->manifest->entries / (worth_a_gpu * r->workers);
    const bool built = gc_backend_find(GPUCONV_BACKEND_CUDA) != NULL;
    if (b->backend == GPUCONV_BACKEND_CUDA && !built)
        (void)gc_backend_fail_missing(&why);
    else if (b->backend == GPUCONV_BACKEND_CUDA)
        status = take_devices(r, GC_BATCH_DEVICES, &why, error);
    else if (b->backend == GPUCONV_BACKEND_AUTO && built && paying > 0)
        status = take_devices(r, paying, &why, error);
    if (status)
        return status;
    if (b->backend == GPUCONV_BACKEND_CUDA && r->devices == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s", why.message);
    if (why.status && b->note && first_rank(r)) {
        char text[600];
        (void)snprintf(text, sizeof text, "running on the CPU: %s", why.message);
        b->note(b->context, text);
    }
    r->workers = (int)gc_max(r->workers, r->devices);
    r->workers = (int)gc_max(1, gc_min(r->workers, others(r) ? r->workers : b->manifest->entries));
    return GPUCONV_OK;
}

/* Writes the "done" line of an entry that an earlier run finished but could not tell. */
static gpuconv_status tell_late(run *r, const gc_entry *e, const gc_past *p, gpuconv_error *error) {
    gc_outcome o = {.where = p->where,
                    .seconds = p->seconds,
                    .audio = p->audio,
                    .clipped = p->clipped,
                    .input = p->input,
                    .response = p->response,
                    .output = p->output,
                    .in_place = p->in_place};
    char *line = gc_result_line(e, &o);
    gpuconv_status status =
        line ? gc_results_write(r->results, line, strlen(line), error) : gc_fail_memory(error, "results");
    free(line);
    return status;
}

/* Skips an entry that is done, refuses one whose input is lost, and lists any other. */
static gpuconv_status list_entry(run *r, int64_t i, gc_verdict verdict, const gc_past *past, gpuconv_error *error) {
    gc_entry *e = &r->batch->manifest->entry[i];
    if (verdict == GC_VERDICT_DONE || verdict == GC_VERDICT_UNTOLD)
        r->seen.skipped++;
    else
        r->todo[r->count++] = i;
    if (verdict == GC_VERDICT_UNTOLD)
        return tell_late(r, e, past, error);
    if (verdict == GC_VERDICT_LOST &&
        !gc_entry_refuse(e,
                         "an earlier run with other settings, response or input replaced its input; bring the input "
                         "back, or take this line out:",
                         e->output))
        return gc_fail_memory(error, "a list of entries");
    return GPUCONV_OK;
}

/* Opens the list of results and lists what is to do: everything, or on --resume what is not done. */
static gpuconv_status list_entries(run *r, const char *results, gpuconv_error *error) {
    const gc_manifest *m = r->batch->manifest;
    gc_history *history = NULL;
    unsigned char *verdict = gc_calloc(gc_max(1, m->entries), 1);
    int64_t whole = 0;
    bool newline = false;
    gpuconv_status status = verdict ? GPUCONV_OK : gc_fail_memory(error, "a list of entries");
    if (!status && r->batch->resume) {
        history = gc_history_new(m);
        status = history ? gc_history_read(history, results, &whole, &newline, error)
                         : gc_fail_memory(error, "a list of entries");
        if (!status)
            status = gc_history_judge(history, r->batch->folder, r->workers, verdict, error);
    }
    if (!status)
        status = gc_results_open(results, r->batch->resume, &r->results, error);
    if (!status && r->batch->resume)
        status = gc_results_mend(r->results, whole, newline, error);
    for (int64_t i = 0; i < m->entries && !status; i++)
        status = list_entry(r, i, verdict[i], history ? gc_history_of(history, i) : NULL, error);
    gc_history_free(history);
    free(verdict);
    return status;
}

static gpuconv_status begin(run *r, gpuconv_error *error) {
    char path[8192];
    gpuconv_status status = choose_processors(r, error);
    if (!status && snprintf(path, sizeof path, "%s/results.jsonl", r->batch->folder) >= (int)sizeof path)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: too long a name", r->batch->folder);
    if (!status)
        status = gc_create_parent_folders(path, error);
    r->seen.total = r->batch->manifest->entries;
    r->todo = gc_calloc(gc_max(r->seen.total, GC_RANKS_ENTRIES), sizeof *r->todo);
    if (!status && !r->todo)
        status = gc_fail_memory(error, "a list of entries");
    if (!status && first_rank(r))
        status = gc_refuse_conflicts(r->batch->manifest, r->batch->folder, r->workers, error);
    if (!status && first_rank(r))
        status = list_entries(r, path, error);
    r->responses = status ? NULL : gc_responses_new(responses_kept, r->backend->forget);
    if (!status && !r->responses)
        status = gc_fail_memory(error, "a table of responses");
    return status;
}

gpuconv_status gc_batch_run(const gc_batch *b, gc_batch_progress *progress, gpuconv_error *error) {
    run *r = gc_calloc(1, sizeof *r);
    *progress = (gc_batch_progress){0};
    if (!r)
        return gc_fail_memory(error, "a batch");
    r->batch = b;
    r->began = gc_now();
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->asking, NULL);
    sem_init(&r->copying, 0, COPYING_MOST);
    pthread_cond_init(&r->changed, NULL);
    gpuconv_status status = begin(r, error);
    if (status)
        r->seen.total = 0; /* it has not begun */
    else
        status = run_threads(r, error);
    gpuconv_error late = {0};
    gpuconv_status closed = gc_results_close(r->results, &late);
    if (closed && !status) {
        *error = late;
        status = closed;
    }
    gc_responses_free(r->responses);
    *progress = r->seen;
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->asking);
    pthread_cond_destroy(&r->changed);
    sem_destroy(&r->copying);
    free(r->todo);
    free(r->lines);
    free(r);
    return status;
}
