/* Threads of a batch: workers process entries, rank 0 of several has a thread that serves the others, and the caller's
 * thread reports progress. */
#include "batch.h"

#include "batch_state.h"
#include "history.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/subnormal.h"
#include "list_write.h"
#include "shard_in.h"

#include <stdio.h>
#include <stdlib.h>

/* Workers that may copy samples into files at the same time. 64 that copy are a quarter slower than 24, because they
 * contend inside the kernel. */
enum { COPY_PERMITS = 24 };

typedef struct batch_thread {
    gc_batch_state *state;
    int device; /* index into state->device */
    pthread_t thread;
} batch_thread;

static void end_thread(gc_batch_state *s) {
    pthread_mutex_lock(&s->lock);
    s->active--;
    pthread_cond_signal(&s->thread_ended);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

static bool next_entry(void *context, int64_t *entry) {
    return gc_batch_next(((batch_thread *)context)->state, entry);
}

static void report(void *context, int64_t entry, const gc_outcome *o) {
    batch_thread *t = context;
    gc_batch_record(t->state, t->device, entry, o);
}

/* Counts a worker that got no slot, because memory is short or its device is unusable, and notes an unusable device
 * once.
 * @return whether other workers may have slots, so that the batch can continue without this one */
static bool continue_without(batch_thread *t, const gpuconv_error *error) {
    gc_batch_state *s = t->state;
    pthread_mutex_lock(&s->lock);
    bool others_left = ++s->slotless < s->workers;
    if (others_left && error->status == GPUCONV_ERROR_DEVICE && !s->unavailable[t->device]) {
        s->unavailable[t->device] = true;
        if (s->batch->note) {
            char text[600];
            (void)snprintf(text, sizeof text, "device not used: %s", error->message);
            s->batch->note(s->batch->context, text);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return others_left;
}

static void *run_worker(void *argument) {
    batch_thread *t = argument;
    gc_batch_state *s = t->state;
    gpuconv_error error = {0};
    gc_worker w = {.manifest = s->batch->manifest,
                   .responses = s->responses,
                   .folder = s->batch->folder,
                   .backend = s->backend,
                   .devices = s->devices,
                   .device = s->devices > 0 ? s->device[t->device] : 0,
                   .cancel = &s->stop,
                   .copy_permits = &s->copy_permits,
                   .next = next_entry,
                   .report = report,
                   .context = t};
    bool has_slot;
    gc_flush_subnormals();
    gpuconv_cancel_set(&s->stop);
    gpuconv_status status = gc_work(&w, &has_slot, &error);
    if (status && (has_slot || !continue_without(t, &error)))
        gc_batch_fail(s, status, &error);
    end_thread(s);
    return NULL;
}

/* ---- Other threads ----------------------------------------------------------------------------------------------- */

static void *run_server(void *argument) {
    gc_batch_state *s = argument;
    if (!gc_batch_serve_ranks(s)) {
        gpuconv_error error = {.status = GPUCONV_ERROR_STATE, .message = "the connection to another rank was lost"};
        gc_batch_fail(s, GPUCONV_ERROR_STATE, &error);
    }
    end_thread(s);
    return NULL;
}

/* Reports progress and passes cancellation on to the workers, until all threads have ended. */
static void watch(gc_batch_state *s) {
    const gc_batch *b = s->batch;
    pthread_mutex_lock(&s->lock);
    while (s->active > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->thread_ended, &s->lock, &until);
        if (gc_flag_is_raised(b->cancel))
            gc_flag_raise(&s->stop);
        s->progress.seconds = gc_now() - s->start_time;
        gc_batch_progress progress = s->progress;
        pthread_mutex_unlock(&s->lock);
        if (b->progress)
            b->progress(b->context, &progress);
        pthread_mutex_lock(&s->lock);
    }
    s->progress.seconds = gc_now() - s->start_time;
    const gc_batch_progress last = s->progress; /* the threads may have ended after the report above */
    pthread_mutex_unlock(&s->lock);
    if (b->progress)
        b->progress(b->context, &last);
}

/* Runs all threads until the batch is done. */
static gpuconv_status run_threads(gc_batch_state *s, gpuconv_error *error) {
    bool needs_server = gc_batch_has_ranks(s) && gc_batch_is_first_rank(s), has_server = false;
    pthread_t server;
    int started = 0;
    batch_thread *threads = gc_calloc(s->workers, sizeof *threads);
    if (!threads)
        return gc_fail_memory(error, "workers");
    s->active = s->workers + needs_server;
    for (; started < s->workers; started++) {
        threads[started] = (batch_thread){s, s->devices > 0 ? started % s->devices : 0, 0};
        if (pthread_create(&threads[started].thread, NULL, run_worker, &threads[started]) != 0)
            break;
    }
    if (needs_server)
        has_server = pthread_create(&server, NULL, run_server, s) == 0;
    if (started < s->workers || has_server != needs_server) {
        gpuconv_error none = {.status = GPUCONV_ERROR_MEMORY, .message = "cannot start the threads of the batch"};
        gc_batch_fail(s, GPUCONV_ERROR_MEMORY, &none);
        pthread_mutex_lock(&s->lock);
        s->active -= s->workers - started + (needs_server && !has_server);
        pthread_mutex_unlock(&s->lock);
    }
    watch(s);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    if (has_server)
        pthread_join(server, NULL);
    if (!gc_batch_is_first_rank(s))
        gc_batch_leave_ranks(s);
    free(threads);
    if (s->status) {
        *error = s->error;
        return s->status;
    }
    if (gc_flag_is_raised(s->batch->cancel))
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted; continue with --resume");
    return GPUCONV_OK;
}

/* Packs the outputs of other ranks, which are files until now; results.jsonl says which entries have failed. */
static gpuconv_status pack_ranks(gc_batch_state *s, gpuconv_error *error) {
    const gc_manifest *m = s->batch->manifest;
    char results[GC_OWN_PATH];
    int64_t complete;
    bool newline;
    gc_history *history = gc_history_new(m);
    unsigned char *done = gc_calloc(gc_max(1, m->entries), 1);
    gpuconv_status status = history && done ? gc_own_path(s->batch->folder, GC_OWN_RESULTS, results, error)
                                            : gc_fail_memory(error, "shards");
    if (!status)
        status = gc_history_read(history, results, &complete, &newline, error);
    for (int64_t i = 0; i < m->entries && !status; i++)
        done[i] = gc_history_last_line(history, i)->done;
    gc_history_free(history);
    if (!status) {
        gc_packer_expect_none(s->packer, done);
        status = gc_packer_pack_rest(s->packer, error);
    }
    free(done);
    return status;
}

/* Packs what the first rank has not packed, and ends the log. */
static gpuconv_status end_first_rank(gc_batch_state *s, gpuconv_status status, gpuconv_error *error) {
    if (!status && s->packer && gc_batch_has_ranks(s))
        status = pack_ranks(s, error);
    gpuconv_error close_error = {0};
    gpuconv_status closed = gc_results_close(s->results, &close_error);
    if (closed && !status) {
        *error = close_error;
        status = closed;
    }
    return status;
}

/* Writes the list of the outputs after a batch that ran to its end, or failed itself. */
static gpuconv_status write_list(gc_batch_state *s, gpuconv_status status, gpuconv_error *error) {
    gpuconv_error why = {0};
    const gc_batch *b = s->batch;
    if (!gc_batch_is_first_rank(s) || s->progress.total == 0 || status == GPUCONV_ERROR_CANCELLED)
        return status;
    const gc_list_output output = {b->folder, b->absolute, b->id_suffix, b->shard_size};
    gpuconv_status listed = gc_list_write(b->manifest, &output, &s->progress.listed, &why);
    char names[256], text[1024];
    if (!listed && b->note && b->manifest->kind == GC_LIST_KALDI &&
        gc_list_left_out_kaldi(b->manifest->list[0], names, sizeof names)) {
        (void)snprintf(text, sizeof text, "%.500s: not carried over into the list of the outputs: %s",
                       b->manifest->list[0], names);
        b->note(b->context, text);
    }
    if (listed && !status)
        *error = why;
    return status ? status : listed;
}

/* Notes the first file in which samples were counted, and how many others there are. */
static void note_files(const gc_batch_state *s, const gc_batch_files *f, bool output, const char *what) {
    char text[1024], others[64] = "";
    const gc_batch *b = s->batch;
    if (!f->files || !b->note)
        return;
    const gc_entry *e = &b->manifest->entry[f->first];
    if (f->files > 1)
        (void)snprintf(others, sizeof others, " and %lld other file%s", (long long)f->files - 1,
                       f->files > 2 ? "s" : "");
    (void)snprintf(text, sizeof text, "%.500s%s: %s", output ? e->output : e->input, others, what);
    b->note(b->context, text);
}

gpuconv_status gc_batch_run(const gc_batch *b, gc_batch_progress *progress, gpuconv_error *error) {
    gc_batch_state *s = gc_calloc(1, sizeof *s);
    *progress = (gc_batch_progress){.listed = -1};
    if (!s)
        return gc_fail_memory(error, "a batch");
    s->batch = b;
    s->start_time = gc_now();
    s->progress.listed = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->request_lock, NULL);
    sem_init(&s->copy_permits, 0, COPY_PERMITS);
    pthread_cond_init(&s->thread_ended, NULL);
    gpuconv_status status = gc_batch_prepare(s, error);
    if (status)
        s->progress.total = 0; /* tells the caller that no entry was begun */
    else
        status = run_threads(s, error);
    status = end_first_rank(s, status, error);
    status = write_list(s, status, error);
    note_files(s, &s->clipped, true, "samples clipped; a lower --gain or --encoding float keeps them");
    note_files(s, &s->not_finite, false, "samples that are not finite (NaN or infinity) were taken as silence");
    note_files(s, &s->shortened, true,
               "shorter than the part that its list asks for; its text or what its supervisions say may be longer");
    gc_packer_free(s->packer);
    gc_responses_free(s->responses);
    gc_shards_forget();
    gc_folder_lock_free(s->folder_lock);
    *progress = s->progress;
    gc_failures_sort(&s->failures);
    for (int i = 0; b->failures && i < s->failures.count; i++)
        b->failures(b->context, s->failures.group[i].count, s->failures.group[i].example);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->request_lock);
    pthread_cond_destroy(&s->thread_ended);
    sem_destroy(&s->copy_permits);
    free(s->todo);
    free(s->unsent_lines);
    free(s);
    return status;
}
