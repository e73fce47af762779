/*
 * Who does what: workers take the next entry of a list, or what rank 0 hands to this rank; the caller's thread keeps
 * watch and, on rank 0 of several, a thread answers the others.
 */
#include "batch.h"

#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/subnormal.h"
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* For another rank: few enough that nobody waits long for the last ones. */
static int take_for_rank(void *context, int64_t *entries) {
    run *r = context;
    pthread_mutex_lock(&r->lock);
    int64_t fair = (r->count - r->at) / (8 * (int64_t)r->batch->ranks->size);
    pthread_mutex_unlock(&r->lock);
    return take(r, entries, (int)gc_max(1, gc_min(GC_RANKS_ENTRIES, fair)));
}

/* Another rank's list is what rank 0 gave it last. */
static bool ask_for_more(run *r, bool leaving) {
    int64_t entries[GC_RANKS_ENTRIES];
    pthread_mutex_lock(&r->lock);
    gc_ranks_news news = r->news;
    char *lines = r->lines;
    r->news = (gc_ranks_news){0};
    r->lines = NULL;
    r->room = 0;
    pthread_mutex_unlock(&r->lock);
    news.lines = lines;
    news.leaving = leaving;
    int n = r->batch->ranks->ask(&news, entries);
    free(lines);
    if (n < 0) {
        gpuconv_error lost = {.status = GPUCONV_ERROR_STATE, .message = "the first rank does not answer"};
        give_up(r, GPUCONV_ERROR_STATE, &lost);
    }
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

static bool next_of_hand(void *context, int64_t *entry) {
    return next(((hand *)context)->r, entry);
}

/* What another rank brings. */
static void accept_news(void *context, const gc_ranks_news *news) {
    run *r = context;
    gpuconv_error error = {0};
    pthread_mutex_lock(&r->lock);
    add_up(r, news);
    gpuconv_status status = gc_results_write(r->results, news->lines, news->bytes, &error);
    pthread_mutex_unlock(&r->lock);
    if (status)
        give_up(r, status, &error);
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
                   .context = h};
    bool began;
    gc_flush_subnormals();
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

#ifdef GPUCONV_WITH_CUDA
/* The devices that were asked for, or up to `most`. The first is woken, so that a machine whose GPUs cannot be had is
 * known at once; the others wake one after the other while it works. *why: there are none to be had. */
static gpuconv_status take_devices(run *r, int64_t most, gpuconv_error *why, gpuconv_error *error) {
    const gc_batch *b = r->batch;
    int found = gc_batch_cuda.devices(why), count = found == 0 ? 0 : b->device ? b->devices : (int)gc_min(found, most);
    count = (int)gc_min(count, GC_BATCH_DEVICES);
    for (int i = 0; i < count; i++) {
        r->device[i] = b->device ? b->device[i] : i;
        if (r->device[i] < 0 || r->device[i] >= found)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "there is no CUDA device %d, only 0 to %d", r->device[i],
                           found - 1);
        r->seen.device[i] = r->device[i];
    }
    if (count == 0 || gc_batch_cuda.wake(r->device[0], why) != GPUCONV_OK)
        return GPUCONV_OK;
    r->backend = &gc_batch_cuda;
    r->devices = r->seen.devices = count;
    return GPUCONV_OK;
}
#endif

static gpuconv_status choose_processors(run *r, gpuconv_error *error) {
    const gc_batch *b = r->batch;
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK;
    r->backend = &gc_batch_cpu;
    r->workers = b->workers > 0 ? b->workers : gc_processors();
#ifdef GPUCONV_WITH_CUDA
    const int64_t paying = b->manifest->entries / (worth_a_gpu * r->workers);
    if (b->backend == GPUCONV_BACKEND_CUDA)
        status = take_devices(r, GC_BATCH_DEVICES, &why, error);
    else if (b->backend == GPUCONV_BACKEND_AUTO && paying > 0)
        status = take_devices(r, paying, &why, error);
#else
    if (b->backend == GPUCONV_BACKEND_CUDA)
        gc_fail(&why, GPUCONV_ERROR_DEVICE, "this build has no CUDA backend");
    (void)worth_a_gpu;
#endif
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

/* What is to do: everything, or on --resume what has no output. An output that is there is whole: it got its name only
 * when it was. */
static gpuconv_status list_entries(run *r, gpuconv_error *error) {
    const gc_manifest *m = r->batch->manifest;
    r->seen.total = m->entries;
    r->todo = gc_calloc(gc_max(m->entries, GC_RANKS_ENTRIES), sizeof *r->todo);
    if (!r->todo)
        return gc_fail_memory(error, "a list of entries");
    for (int64_t i = 0; i < m->entries && first_rank(r); i++) {
        struct stat st;
        char path[8192];
        bool there = false;
        if (r->batch->resume && !m->entry[i].wrong) {
            int n = snprintf(path, sizeof path, "%s/%s", r->batch->folder, m->entry[i].output);
            there = n < (int)sizeof path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
        }
        if (there)
            r->seen.skipped++;
        else
            r->todo[r->count++] = i;
    }
    return GPUCONV_OK;
}

static gpuconv_status begin(run *r, gpuconv_error *error) {
    char path[8192];
    gpuconv_status status = choose_processors(r, error);
    if (!status && snprintf(path, sizeof path, "%s/results.jsonl", r->batch->folder) >= (int)sizeof path)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%.200s...: too long a name", r->batch->folder);
    if (!status)
        status = gc_make_folders(path, error);
    if (!status)
        status = list_entries(r, error);
    if (!status && first_rank(r))
        status = gc_results_open(path, r->batch->resume, &r->results, error);
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
    if (!status)
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
