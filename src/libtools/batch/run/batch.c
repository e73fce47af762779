/*
 * Runs a batch. Workers of rank 0 take entries from its list; other ranks receive portions of it in answer to their
 * reports. Outcomes are lines of results.jsonl, which rank 0 writes. Workers process entries, rank 0 of several has a
 * thread that serves the others, and the caller's thread reports progress.
 */
#include "batch.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/module.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/subnormal.h"
#include "libtools/batch/output/folder.h"
#include "libtools/batch/output/history.h"
#include "libtools/batch/output/shards.h"
#include "ranks.h"
#include "share.h"
#include "worker.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entries of this process in which something was counted. */
typedef struct counted_files {
    int64_t files, first; /* first: the least index of them */
} counted_files;

/* A GPU of a batch that is shared with the cores. */
typedef enum gpu_state { GPU_STARTS = 0, GPU_READY, GPU_LOST } gpu_state;

typedef struct batch_state {
    /* Constant while threads run, but for devices and device[] of a shared batch. */
    const gc_batch *batch;
    const gc_backend *backend; /* of all entries, or of those on the GPUs */
    int devices, workers;      /* devices 0: the CPU */
    int device[GC_BATCH_DEVICES];
    bool shared; /* between the cores and GPUs, which are started while the cores work */
    gc_responses *responses;
    gc_folder_lock *folder_lock; /* on other ranks taken with the first entries */
    gc_results *results;         /* rank 0 only */
    gc_packer *packer;           /* rank 0 only; NULL: outputs are files */
    double start_time;
    sem_t copy_permits;

    volatile int stop; /* the cancel flag of all workers: cancelled, or the batch itself failed */

    pthread_mutex_t lock; /* of the following fields */
    pthread_cond_t thread_ended;
    int64_t *todo;                 /* indices of entries; on other ranks the last portion from rank 0 */
    int64_t todo_count, todo_next; /* todo_next: the first that no worker has taken */
    /* Of a shared batch, whose GPUs take entries from the end: the first entries of the list, which only the cores
     * take, and the place from which on only the GPUs do. */
    int64_t todo_any, todo_gpus;
    gc_batch_share share;
    bool expected; /* that GPUs help: their driver starts; `share` is then an estimate */
    bool decided;  /* whether GPUs are used, and `share` */
    gpu_state gpu[GC_BATCH_DEVICES];
    pthread_cond_t gpus_changed;        /* expected, decided, share, gpu[] */
    int active;                         /* threads that have not ended */
    int slotless;                       /* workers that could not get a slot */
    bool unavailable[GC_BATCH_DEVICES]; /* devices whose failure was noted */
    gc_batch_progress progress;
    gc_failures failures; /* of all ranks, on rank 0 */
    counted_files clipped, not_finite, shortened;
    gc_ranks_report unsent; /* not rank 0: outcomes that rank 0 has not received */
    gc_buffer unsent_lines;
    gpuconv_status status; /* the first error of the batch itself */
    gpuconv_error error;

    pthread_mutex_t request_lock; /* held while rank 0 is asked; taken before `lock` */
    bool exhausted;               /* rank 0 has no more entries; under request_lock */
} batch_state;

/* ---- The module of the ranks ---- */

/* Looks for the environment variables of launchers: Open MPI's mpirun, PMIx, PMI (Slurm's srun --mpi). */
static bool is_launched(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error) {
    static gc_ranks module;
    char why[400];
    *ranks = NULL;
    if (!is_launched())
        return GPUCONV_OK;
    gc_ranks_start *start;
    *(void **)&start = gc_module_load("gpuconv-mpi", GC_RANKS_START, why, sizeof why);
    if (!start)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "started by a launcher of parallel programs, but this build has no MPI: %s", why);
    if (!start(&module, why, sizeof why))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "cannot start MPI: %s", why);
    *ranks = &module;
    return GPUCONV_OK;
}

/* ---- Distribution of entries and collection of outcomes ---- */

static bool batch_has_ranks(const batch_state *s) {
    return s->batch->ranks && s->batch->ranks->size > 1;
}

static bool batch_is_first_rank(const batch_state *s) {
    return !batch_has_ranks(s) || s->batch->ranks->rank == 0;
}

/* Returns whether no further entry is begun. Requires the lock. */
static bool batch_ends(const batch_state *s) {
    return gc_flag_is_raised(&s->stop) || (s->batch->fail_fast && s->progress.failed > 0);
}

/* Stores the first error of the batch itself and stops the workers. */
static void batch_fail(batch_state *s, gpuconv_status status, const gpuconv_error *error) {
    pthread_mutex_lock(&s->lock);
    if (!s->status) {
        s->status = status;
        s->error = *error;
    }
    gc_flag_raise(&s->stop);
    pthread_cond_broadcast(&s->gpus_changed);
    pthread_mutex_unlock(&s->lock);
}

/* Locks the folder of the batch. @return FILE, MEMORY */
static gpuconv_status batch_lock_folder(batch_state *s, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    char text[600];
    int unsupported;
    gpuconv_status status = gc_folder_lock_new(b->folder, batch_is_first_rank(s), &s->folder_lock, &unsupported, error);
    if (!status && unsupported && b->note && batch_is_first_rank(s)) {
        (void)snprintf(text, sizeof text, "%.400s: cannot be locked (%s); start no other batch into it", b->folder,
                       strerror(unsupported));
        b->note(b->context, text);
    }
    return status;
}

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

static void add_to_progress(batch_state *s, const gc_ranks_report *report) {
    s->progress.done += report->done;
    s->progress.failed += report->failed;
    s->progress.clipped += report->clipped;
    s->progress.audio += report->audio;
}

/* Writes lines to results.jsonl, or on other ranks appends them to the next report. Requires the lock. */
static gpuconv_status store_lines(batch_state *s, const char *lines, size_t bytes, gpuconv_error *error) {
    if (batch_is_first_rank(s))
        return gc_results_write(s->results, lines, bytes, error);
    return gc_buffer_append(&s->unsent_lines, lines, bytes) ? GPUCONV_OK : gc_fail_memory(error, "results");
}

static void count_file(counted_files *f, int64_t entry, int64_t samples) {
    if (samples > 0 && (f->files++ == 0 || entry < f->first))
        f->first = entry;
}

/* Records an outcome in results.jsonl, or for the next report to rank 0. `device` is an index into state->device; -1:
 * the cores computed the entry. */
static void batch_record(batch_state *s, int device, int64_t entry, const gc_outcome *o) {
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
    if (device >= 0)
        s->progress.device_audio[device] += o->audio;
    pthread_mutex_unlock(&s->lock);
    free(line);
    if (!status && s->packer)
        status = gc_packer_end(s->packer, entry, o->status != GPUCONV_OK, &error);
    if (status)
        batch_fail(s, status, &error);
}

/* Records an entry that is refused in the manifest. */
static void record_refused(batch_state *s, int64_t entry) {
    const gc_entry *e = &s->batch->manifest->entry[entry];
    gc_outcome o = {.status = GPUCONV_ERROR_ARGUMENT, .where = ""};
    (void)snprintf(o.reason, sizeof o.reason, "line %lld: %s", (long long)e->line, e->refusal);
    batch_record(s, -1, entry, &o);
}

/* ---- Between ranks ----------------------------------------------------------------------------------------------- */

/* Takes up to `count` entries of this rank's list. */
static int take_entries(batch_state *s, int64_t *entries, int count) {
    int n = 0;
    pthread_mutex_lock(&s->lock);
    const bool ends = batch_ends(s);
    while (n < count && s->todo_next < s->todo_count && !ends)
        entries[n++] = s->todo[s->todo_next++];
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Takes a portion of the list for another rank: an eighth of its share of the remaining entries, so that all ranks
 * finish at about the same time. Rank 0 records refused entries itself, because only its manifest has all refusals. */
static int take_for_rank(void *context, int64_t *entries) {
    batch_state *s = context;
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
    batch_state *s = context;
    gpuconv_error error = {0};
    pthread_mutex_lock(&s->lock);
    add_to_progress(s, report);
    if (report->failed > 0)
        gc_failures_add_lines(&s->failures, report->lines, report->bytes);
    gpuconv_status status = gc_results_write(s->results, report->lines, report->bytes, &error);
    pthread_mutex_unlock(&s->lock);
    if (status)
        batch_fail(s, status, &error);
}

/* On rank 0, serves the other ranks until all have left. @return false: a message failed */
static bool batch_serve_ranks(batch_state *s) {
    return s->batch->ranks->serve(take_for_rank, accept_report, s);
}

/* Sends this rank's unsent outcomes to rank 0. @return as gc_ranks.request; -1: no answer, and the batch has failed */
static int send_report(batch_state *s, bool leaving, int64_t *entries) {
    pthread_mutex_lock(&s->lock);
    gc_ranks_report report = s->unsent;
    const gc_buffer lines = s->unsent_lines;
    s->unsent = (gc_ranks_report){0};
    s->unsent_lines = (gc_buffer){0};
    pthread_mutex_unlock(&s->lock);
    report.lines = lines.bytes;
    report.bytes = lines.length;
    report.leaving = leaving;
    int n = s->batch->ranks->request(&report, entries);
    free(lines.bytes);
    if (n < 0) {
        gpuconv_error error = {.status = GPUCONV_ERROR_STATE, .message = "the first rank does not answer"};
        batch_fail(s, GPUCONV_ERROR_STATE, &error);
    }
    return n;
}

/* Replaces this rank's list by a portion from rank 0, which has locked the folder before it answers. @return false:
 * there are no more entries, or the batch has failed */
static bool request_entries(batch_state *s) {
    int64_t entries[GC_RANKS_ENTRIES];
    gpuconv_error error = {0};
    int n = send_report(s, false, entries);
    if (n <= 0)
        return false;
    if (!s->folder_lock && batch_lock_folder(s, &error)) {
        batch_fail(s, error.status, &error);
        return false;
    }
    pthread_mutex_lock(&s->lock);
    memcpy(s->todo, entries, (size_t)n * sizeof *entries);
    s->todo_next = 0;
    s->todo_count = n;
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* On another rank, sends the last outcomes and leaves the batch. */
static void batch_leave_ranks(batch_state *s) {
    int64_t unused[GC_RANKS_ENTRIES];
    (void)send_report(s, true, unused);
}

/* Takes the next entry; another rank asks rank 0 for more once its list is empty. @return false: none is left */
static bool batch_next(batch_state *s, int64_t *entry) {
    if (take_entries(s, entry, 1))
        return true;
    if (batch_is_first_rank(s))
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

/* ---- Preparation ---- */

/* Bytes of unreferenced responses that are kept. */
static const int64_t responses_bytes = INT64_C(256) << 20;

/* Entries per core from which on a batch may be shared with GPUs: opening some of them for an estimate then takes less
 * than a hundredth of the time. */
static const int64_t entries_shared = 128;

/* Selects the devices that the user named, or all. *why: the reason if no device can be used; *count is then 0. Fails
 * with DEVICE if a device that the user named does not exist. */
static gpuconv_status select_devices(batch_state *s, int *count, gpuconv_error *why, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    const gc_backend *backend = gc_backend_find(GPUCONV_BACKEND_CUDA);
    *count = 0;
    if (!backend) {
        (void)gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, why);
        return GPUCONV_OK;
    }
    const int found = backend->count_devices(why);
    *count = (int)gc_min(found == 0 || !b->device ? found : b->devices, GC_BATCH_DEVICES);
    for (int i = 0; i < *count; i++) {
        s->device[i] = b->device ? b->device[i] : i;
        if (s->device[i] < 0 || s->device[i] >= found)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d does not exist; there are 0 to %d",
                           s->device[i], found - 1);
    }
    return GPUCONV_OK;
}

/* Takes `count` of the selected devices into use. Requires the lock if threads run. */
static void use_devices(batch_state *s, int count) {
    s->backend = gc_backend_find(GPUCONV_BACKEND_CUDA);
    s->devices = s->progress.devices = count;
    memcpy(s->progress.device, s->device, (size_t)count * sizeof *s->device);
}

/* Chooses between CPU and GPUs if the user does, and the number of workers. The first GPU is initialised, so that a
 * machine with unusable GPUs is detected at once; the others are initialised one after the other while it works. */
static gpuconv_status choose_devices(batch_state *s, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    gpuconv_error why = {0};
    int count = 0;
    s->backend = gc_backend_find(GPUCONV_BACKEND_CPU);
    s->workers = b->workers > 0 ? b->workers : gc_processor_count();
    if (b->backend == GPUCONV_BACKEND_CUDA) {
        const gpuconv_status status = select_devices(s, &count, &why, error);
        if (status)
            return status;
        if (count == 0 || gc_backend_find(GPUCONV_BACKEND_CUDA)->init_device(s->device[0], &why))
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s", why.message);
        use_devices(s, count);
    }
    s->workers = (int)gc_max(s->workers, s->devices);
    s->workers = (int)gc_max(1, gc_min(s->workers, batch_has_ranks(s) ? s->workers : b->manifest->entries));
    return GPUCONV_OK;
}

/* The place where an entry was computed before. */
typedef enum place { PLACE_CORES = 0, PLACE_ANY, PLACE_GPUS } place;

static place place_before(const batch_state *s, const gc_history *history, int64_t entry) {
    const gc_past_line *p =
        history && s->batch->backend == GPUCONV_BACKEND_AUTO ? gc_history_last_line(history, entry) : NULL;
    return !p || !p->known ? PLACE_ANY : p->on_gpu ? PLACE_GPUS : PLACE_CORES;
}

/* Opens results.jsonl and lists the entries to do: all, or with --resume the unfinished ones, by place. */
static gpuconv_status list_entries(batch_state *s, const char *results, gpuconv_error *error) {
    const gc_manifest *m = s->batch->manifest;
    gc_history *history = NULL;
    unsigned char *done = gc_calloc(gc_max(1, m->entries), 1);
    int64_t complete_bytes = 0;
    bool newline = false;
    gpuconv_status status = done ? GPUCONV_OK : gc_fail_memory(error, "a list of entries");
    if (!status && s->batch->resume) {
        history = gc_history_new(m);
        status = history ? gc_history_read(history, results, &complete_bytes, &newline, error)
                         : gc_fail_memory(error, "a list of entries");
        if (!status)
            status = gc_history_judge(history, s->batch->folder, s->packer, s->workers, done, error);
    }
    if (!status)
        status = gc_results_open(results, s->batch->resume, &s->results, error);
    if (!status && s->batch->resume)
        status = gc_results_repair(s->results, complete_bytes, newline, error);
    for (int64_t i = 0; i < m->entries && !status && s->packer; i++)
        if (!done[i])
            gc_packer_expect(s->packer, i);
    for (place at = PLACE_CORES; at <= PLACE_GPUS && !status; at++) {
        s->todo_any = at == PLACE_ANY ? s->todo_count : s->todo_any;
        s->todo_gpus = s->todo_count;
        for (int64_t i = 0; i < m->entries; i++)
            if (!done[i] && place_before(s, history, i) == at)
                s->todo[s->todo_count++] = i;
    }
    if (!status)
        s->progress.skipped = m->entries - s->todo_count;
    gc_history_free(history);
    free(done);
    return status;
}

/* Locks the folder, checks the entries against it, and lists those to do. */
static gpuconv_status prepare_first_rank(batch_state *s, const char *results, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    char kept[GC_OWN_PATH];
    const gc_own_files own = gc_batch_own_files(b);
    gpuconv_status status = batch_lock_folder(s, error);
    if (!status)
        status = gc_refuse_conflicts(b->manifest, &own, s->workers, error);
    if (!status && b->keep_manifest && !(status = gc_own_path(b->folder, GC_OWN_MANIFEST, kept, error)))
        status = gc_manifest_write(b->manifest, kept, error);
    if (!status && b->shard_size > 0) {
        const gc_packer_config config = {b->manifest, b->folder, b->shard_size, b->resume, b->note, b->context};
        s->packer = gc_packer_new(&config);
        status = s->packer ? GPUCONV_OK : gc_fail_memory(error, "shards");
    }
    if (!status)
        status = list_entries(s, results, error);
    if (!status && s->packer && b->resume)
        status = gc_packer_pack_rest(s->packer, error);
    return status;
}

gc_own_files gc_batch_own_files(const gc_batch *b) {
    return (gc_own_files){.folder = b->folder,
                          .manifest = b->keep_manifest,
                          .resume = b->resume,
                          .kind = b->manifest->kind,
                          .shard_size = b->shard_size,
                          .entries = b->manifest->entries};
}

/* ---- Batches that cores and GPUs share (share.h) ---- */

/* Returns what a worker on a device needs, but for next and report. device: index into state->device; -1: the cores. */
static gc_worker make_worker(batch_state *s, int device) {
    return (gc_worker){.manifest = s->batch->manifest,
                       .responses = s->responses,
                       .folder = s->batch->folder,
                       .backend = device < 0 ? gc_backend_find(GPUCONV_BACKEND_CPU) : s->backend,
                       .devices = device < 0 ? 0 : s->devices,
                       .device = device < 0 ? 0 : s->device[device],
                       .cancel = &s->stop,
                       .copy_permits = &s->copy_permits};
}

/* Estimates the rates of a batch. on_gpu: those of the first selected device; if false, a GPU takes no time. Returns
 * false if the device cannot be used or no entry can be opened. */
static bool estimate_rates(batch_state *s, bool on_gpu, gc_batch_rates *rates) {
    const gc_worker w = make_worker(s, -1);
    gc_device gpu;
    gpuconv_config config = gpuconv_config_default();
    config.device = s->device[0];
    return !(on_gpu && gc_backend_find(GPUCONV_BACKEND_CUDA)->probe(&config, &gpu, NULL)) &&
           gc_batch_estimate(&w, on_gpu ? &gpu : NULL, rates);
}

/* Divides the batch among all cores, however many workers there are, and up to `devices` of the selected devices. */
static gc_batch_share divide_batch(const batch_state *s, const gc_batch_rates *rates, int devices) {
    const int ranks = batch_has_ranks(s) ? s->batch->ranks->size : 1;
    return gc_batch_divide(rates, s->progress.total / ranks, gc_processor_count(), devices);
}

/* Returns whether GPUs may shorten the batch, before the cores are measured and the driver tells which GPUs there are:
 * cores may take several times their costs. *one_serves: a second GPU takes longer to start than it saves. */
static bool gpus_may_help(batch_state *s, bool *one_serves) {
    static const double slower = 4;
    const gc_worker w = make_worker(s, -1);
    gc_batch_rates rates;
    *one_serves = false;
    if (!gc_batch_estimate(&w, &gc_batch_slow_gpu, &rates))
        return false;
    rates.cpu *= batch_has_ranks(s) ? 1 : slower;
    *one_serves = divide_batch(s, &rates, 2).devices == 1;
    rates.gpu = 0; /* the fastest GPU takes no time */
    return divide_batch(s, &rates, 1).devices > 0;
}

/* Returns the division by the measured seconds of a core for an entry (0: not known). */
static gc_batch_share divide_measured(batch_state *s, double measured, bool on_gpu, int devices) {
    gc_batch_rates rates;
    if (!estimate_rates(s, on_gpu, &rates))
        return (gc_batch_share){0};
    if (measured > 0)
        gc_batch_measured(&rates, measured);
    return divide_batch(s, &rates, devices);
}

/* Prepares a batch whose backend the user does not choose: it is shared if GPUs may shorten it. Ranks, each of which
 * has a part of the entries, take either the cores or the GPUs. @return DEVICE */
static gpuconv_status share_batch(batch_state *s, gpuconv_error *error) {
    gpuconv_error why = {0};
    int count;
    bool one_serves;
    const bool may_help = gpus_may_help(s, &one_serves);
    if (!batch_has_ranks(s)) {
        s->shared = s->todo_gpus < s->todo_count || may_help;
        if (s->shared && s->batch->one_gpu && !s->batch->device && one_serves)
            s->batch->one_gpu(s->batch->context);
        return GPUCONV_OK;
    }
    if (!may_help)
        return GPUCONV_OK;
    const gpuconv_status status = select_devices(s, &count, &why, error);
    const gc_batch_share share = count > 0 ? divide_measured(s, 0, true, count) : (gc_batch_share){0};
    if (share.gpus > 0.5 && !gc_backend_find(GPUCONV_BACKEND_CUDA)->init_device(s->device[0], &why))
        use_devices(s, share.devices);
    s->workers = (int)gc_max(s->workers, s->devices);
    return status;
}

/* Returns how many entries the cores may take, and how many the GPUs. Requires the lock. */
static int64_t left_for_cores(const batch_state *s, bool gpus_lost) {
    return gc_max(0, (gpus_lost ? s->todo_count : gc_min(s->todo_count, s->todo_gpus)) - s->todo_next);
}

static int64_t left_for_gpus(const batch_state *s) {
    return gc_max(0, s->todo_count - gc_max(s->todo_next, s->todo_any));
}

/* Waits until the cores have computed `entries` and the time is `until`, or they have none left to begin. Returns how
 * many they have computed. */
static int64_t await_entries(batch_state *s, int64_t entries, double until) {
    static const struct timespec step = {.tv_nsec = 500000};
    while (true) {
        pthread_mutex_lock(&s->lock);
        const int64_t done = s->progress.done + s->progress.failed;
        const bool ends = (done >= entries && gc_now() >= until) || !left_for_cores(s, false) || batch_ends(s);
        pthread_mutex_unlock(&s->lock);
        if (ends)
            return done;
        (void)nanosleep(&step, NULL);
    }
}

/* Returns the seconds of a core for an entry, those of all cores over the entries after the first of each worker; 0 if
 * there are too few. Measures for 10 ms at least: first entries are slow, because their memory is new. */
static double measure_cores(batch_state *s) {
    static const double least = 0.01;
    const int64_t before = await_entries(s, s->workers, 0);
    const double began = gc_now();
    const int64_t entries = await_entries(s, before + s->workers, began + least) - before;
    return entries < s->workers ? 0 : (gc_now() - began) * gc_processor_count() / (double)entries;
}

/* Decides whether a shared batch uses GPUs, and which. count: of the selected devices. @return DEVICE: one that the
 * user named does not exist */
static gpuconv_status decide(batch_state *s, int *count, gpuconv_error *why, gpuconv_error *error) {
    const double measured = measure_cores(s);
    const bool needed = s->todo_gpus < s->todo_count; /* by entries that GPUs computed before */
    gc_batch_share share = divide_measured(s, measured, false, 1);
    pthread_mutex_lock(&s->lock);
    const bool helps = !batch_ends(s) && (needed || share.devices > 0);
    s->expected = helps; /* to count the devices starts the driver */
    s->share = share;
    pthread_mutex_unlock(&s->lock);
    const gpuconv_status status = helps ? select_devices(s, count, why, error) : GPUCONV_OK;
    share = *count > 0 ? divide_measured(s, measured, true, *count) : (gc_batch_share){0};
    if (*count > 0 && needed && share.devices == 0)
        share = (gc_batch_share){.devices = 1, .feeders = s->workers};
    pthread_mutex_lock(&s->lock);
    if (share.devices > 0)
        use_devices(s, share.devices);
    s->share = share;
    s->decided = true;
    pthread_cond_broadcast(&s->gpus_changed);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* Starts the GPUs of a shared batch, while the cores compute. */
static void *run_starter(void *argument) {
    batch_state *s = argument;
    gpuconv_error why = {0}, error = {0};
    int count = 0, lost = 0;
    const gpuconv_status status = decide(s, &count, &why, &error);
    if (status)
        batch_fail(s, status, &error);
    for (int i = 0; i < s->devices && !gc_flag_is_raised(&s->stop); i++) {
        const bool works = s->backend->init_device(s->device[i], &why) == GPUCONV_OK;
        lost += !works;
        pthread_mutex_lock(&s->lock);
        s->gpu[i] = works ? GPU_READY : GPU_LOST;
        pthread_cond_broadcast(&s->gpus_changed);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->gpus_changed); /* the batch may have been stopped meanwhile */
    if (why.status && lost == s->devices && s->batch->note) {
        char text[600];
        (void)snprintf(text, sizeof text, "running on the CPU: %s", why.message);
        s->batch->note(s->batch->context, text);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Chooses devices and the number of workers, and on rank 0 lists the entries to do. */
static gpuconv_status batch_prepare(batch_state *s, gpuconv_error *error) {
    char results[GC_OWN_PATH];
    gpuconv_status status = choose_devices(s, error);
    if (!status)
        status = gc_own_path(s->batch->folder, GC_OWN_RESULTS, results, error);
    if (!status)
        status = gc_create_parent_folders(results, error);
    s->progress.total = s->batch->manifest->entries;
    s->todo = gc_calloc(gc_max(s->progress.total, GC_RANKS_ENTRIES), sizeof *s->todo);
    if (!status && !s->todo)
        status = gc_fail_memory(error, "a list of entries");
    if (!status && batch_is_first_rank(s))
        status = prepare_first_rank(s, results, error);
    const bool may_share = s->batch->backend == GPUCONV_BACKEND_AUTO &&
                           s->progress.total >= entries_shared * gc_processor_count() &&
                           gc_backend_find(GPUCONV_BACKEND_CUDA);
    const gc_backend *keeps = may_share ? gc_backend_find(GPUCONV_BACKEND_CUDA) : s->backend;
    s->responses = status ? NULL : gc_responses_new(responses_bytes, keeps->release);
    if (!status && !s->responses)
        status = gc_fail_memory(error, "a table of responses");
    return status || !may_share ? status : share_batch(s, error);
}

/* ---- Threads ---- */

/* Workers that may copy samples into files at the same time. 64 that copy are a quarter slower than 24, because they
 * contend inside the kernel. */
enum { COPY_PERMITS = 24 };

/* The place where the next entry of a thread is computed. */
typedef enum source { SOURCE_NONE = 0, SOURCE_UNKNOWN, SOURCE_CORES, SOURCE_GPUS } source;

typedef struct batch_thread {
    batch_state *state;
    int number;
    int device;    /* index into state->device; -1: the cores */
    source source; /* of a shared batch */
    bool no_slot;  /* of a GPU */
    pthread_t thread;
} batch_thread;

static void end_thread(batch_state *s) {
    pthread_mutex_lock(&s->lock);
    s->active--;
    pthread_cond_signal(&s->thread_ended);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

/* Returns whether the GPUs compute the entries of a shared batch that are left before a core has computed one. */
static bool gpus_end_sooner(const batch_state *s) {
    return s->todo_next >= s->todo_any && (double)left_for_gpus(s) * s->share.gpu < s->share.core;
}

/* Returns whether a thread waits while the first GPU starts. Beside a part b of the cores that is busy, a start takes
 * 1 + 0.75 b^2 times as long (docs/experiments/corpus.md). If all cores have r times the speed of the GPUs, a part b
 * of them saves r b of a start, and b = r / 1.5 saves most. */
static bool leaves_room(const batch_state *s, const batch_thread *t) {
    const double speed = s->share.gpu * s->workers / s->share.core; /* of all cores, in that of the GPUs */
    return s->share.gpus > 0 && t->number >= ceil(speed / 1.5 * s->workers);
}

/* Returns the device that a thread feeds, an index into state->device; -1: there is none. The threads take the devices
 * in turn and skip lost ones. */
static int device_of(const batch_thread *t) {
    const batch_state *s = t->state;
    for (int i = 0; i < s->devices; i++)
        if (s->gpu[(t->number + i) % s->devices] != GPU_LOST)
            return (t->number + i) % s->devices;
    return -1;
}

/* Returns where the next entry of a thread of a shared batch is computed. The first threads keep the GPUs busy; the
 * others, and these while their GPU starts, take entries of the cores. Requires the lock. */
static source next_source(const batch_thread *t) {
    const batch_state *s = t->state;
    const int device = device_of(t);
    const gpu_state gpu = device < 0 ? GPU_LOST : s->gpu[device];
    const bool usable = device >= 0 && s->slotless < s->share.feeders, lost = s->decided && !usable;
    bool ready = false;
    for (int i = 0; i < s->devices && usable; i++)
        ready = ready || s->gpu[i] == GPU_READY;
    const bool feeds = left_for_gpus(s) > 0 && !t->no_slot && t->number < s->share.feeders;
    const bool starts = s->expected && !lost && !ready, cores = left_for_cores(s, lost) > 0;
    if (batch_ends(s))
        return SOURCE_NONE;
    if (feeds && gpu == GPU_READY)
        return SOURCE_GPUS;
    if (cores && !(starts && leaves_room(s, t)) && !(ready && gpus_end_sooner(s)))
        return SOURCE_CORES;
    return (cores && starts) || (feeds && gpu == GPU_STARTS) || (!s->decided && left_for_gpus(s) > 0) ? SOURCE_UNKNOWN
                                                                                                      : SOURCE_NONE;
}

static bool next_entry(void *context, int64_t *entry) {
    const batch_thread *t = context;
    batch_state *s = t->state;
    if (!s->shared)
        return batch_next(s, entry);
    pthread_mutex_lock(&s->lock);
    const bool found = next_source(t) == t->source;
    if (found)
        *entry = t->source == SOURCE_GPUS ? s->todo[--s->todo_count] : s->todo[s->todo_next++];
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void report(void *context, int64_t entry, const gc_outcome *o) {
    batch_thread *t = context;
    batch_record(t->state, t->device, entry, o);
}

/* Counts a worker that got no slot, because memory is short or its device is unusable, and notes an unusable device
 * once.
 * @return whether other workers may have slots, so that the batch can continue without this one */
static bool continue_without(batch_thread *t, const gpuconv_error *error) {
    batch_state *s = t->state;
    pthread_mutex_lock(&s->lock);
    bool others_left = ++s->slotless < s->workers;
    if (others_left && error->status == GPUCONV_ERROR_DEVICE && t->device >= 0 && !s->unavailable[t->device]) {
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

/* Computes entries until none is left, or, in a shared batch, until the next one is computed elsewhere. */
static gpuconv_status work(batch_thread *t, bool *has_slot, gpuconv_error *error) {
    pthread_mutex_lock(&t->state->lock);
    gc_worker w = make_worker(t->state, t->device);
    pthread_mutex_unlock(&t->state->lock);
    w.next = next_entry;
    w.report = report;
    w.context = t;
    return gc_work(&w, has_slot, error);
}

/* Waits until it is known where the next entry of a thread is computed. @return false: no entry is left */
static bool await_source(batch_thread *t) {
    batch_state *s = t->state;
    pthread_mutex_lock(&s->lock);
    while ((t->source = next_source(t)) == SOURCE_UNKNOWN)
        pthread_cond_wait(&s->gpus_changed, &s->lock);
    t->device = t->source == SOURCE_GPUS ? device_of(t) : -1;
    pthread_mutex_unlock(&s->lock);
    return t->source != SOURCE_NONE;
}

static void *run_worker(void *argument) {
    batch_thread *t = argument;
    batch_state *s = t->state;
    bool goes_on = true;
    gc_flush_subnormals();
    gpuconv_cancel_set(&s->stop);
    while (goes_on && (!s->shared || await_source(t))) {
        gpuconv_error error = {0};
        bool has_slot;
        const gpuconv_status status = work(t, &has_slot, &error);
        const bool no_slot = status && !has_slot, others = no_slot && continue_without(t, &error);
        t->no_slot = t->no_slot || no_slot;
        goes_on = s->shared && (!status || (no_slot && t->device >= 0));
        if (status && !others && !goes_on)
            batch_fail(s, status, &error);
    }
    end_thread(s);
    return NULL;
}

/* ---- Other threads ----------------------------------------------------------------------------------------------- */

static void *run_server(void *argument) {
    batch_state *s = argument;
    if (!batch_serve_ranks(s)) {
        gpuconv_error error = {.status = GPUCONV_ERROR_STATE, .message = "the connection to another rank was lost"};
        batch_fail(s, GPUCONV_ERROR_STATE, &error);
    }
    end_thread(s);
    return NULL;
}

/* Reports progress and passes cancellation on to the workers, until all threads have ended. */
static void watch(batch_state *s) {
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
static gpuconv_status run_threads(batch_state *s, gpuconv_error *error) {
    bool needs_server = batch_has_ranks(s) && batch_is_first_rank(s), has_server = false, has_starter = false;
    pthread_t server, starter;
    int started = 0;
    batch_thread *threads = gc_calloc(s->workers, sizeof *threads);
    if (!threads)
        return gc_fail_memory(error, "workers");
    s->active = s->workers + needs_server;
    for (; started < s->workers; started++) {
        threads[started] = (batch_thread){.state = s, .number = started};
        threads[started].device = s->devices > 0 ? started % s->devices : -1;
        if (pthread_create(&threads[started].thread, NULL, run_worker, &threads[started]) != 0)
            break;
    }
    if (needs_server)
        has_server = pthread_create(&server, NULL, run_server, s) == 0;
    if (s->shared)
        has_starter = pthread_create(&starter, NULL, run_starter, s) == 0;
    if (started < s->workers || has_server != needs_server || has_starter != s->shared) {
        gpuconv_error none = {.status = GPUCONV_ERROR_MEMORY, .message = "cannot start the threads of the batch"};
        batch_fail(s, GPUCONV_ERROR_MEMORY, &none);
        pthread_mutex_lock(&s->lock);
        s->active -= s->workers - started + (needs_server && !has_server);
        pthread_mutex_unlock(&s->lock);
    }
    watch(s);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    if (has_server)
        pthread_join(server, NULL);
    if (has_starter)
        pthread_join(starter, NULL);
    if (!batch_is_first_rank(s))
        batch_leave_ranks(s);
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
static gpuconv_status pack_ranks(batch_state *s, gpuconv_error *error) {
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
static gpuconv_status end_first_rank(batch_state *s, gpuconv_status status, gpuconv_error *error) {
    if (!status && s->packer && batch_has_ranks(s))
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
static gpuconv_status write_list(batch_state *s, gpuconv_status status, gpuconv_error *error) {
    gpuconv_error why = {0};
    const gc_batch *b = s->batch;
    if (!batch_is_first_rank(s) || s->progress.total == 0 || status == GPUCONV_ERROR_CANCELLED)
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
static void note_files(const batch_state *s, const counted_files *f, bool output, const char *what) {
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
    batch_state *s = gc_calloc(1, sizeof *s);
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
    pthread_cond_init(&s->gpus_changed, NULL);
    gpuconv_status status = batch_prepare(s, error);
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
    pthread_cond_destroy(&s->gpus_changed);
    sem_destroy(&s->copy_permits);
    free(s->todo);
    free(s->unsent_lines.bytes);
    free(s);
    return status;
}
