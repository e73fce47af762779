/* Preparation of a batch: chooses the devices, and lists the entries to do. */
#include "batch_state.h"
#include "history.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/pool.h"
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of unreferenced responses that are kept. */
static const int64_t responses_bytes = INT64_C(256) << 20;

/* Entries per core from which on a GPU finishes sooner, its initialisation included, if the backend is not chosen by
 * the user; for files of a few seconds. Each further GPU needs as many again, because GPUs are initialised one after
 * the other. */
static const int64_t entries_per_gpu = 1280;

/* Selects the devices that the user named, or up to `count_max`. Initialises the first, so that a machine with unusable
 * GPUs is detected at once; the others are initialised one after the other while the first works. *why: the reason if
 * no device can be used. */
static gpuconv_status select_devices(gc_batch_state *s, int64_t count_max, gpuconv_error *why, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    const gc_backend *backend = gc_backend_find(GPUCONV_BACKEND_CUDA);
    if (!backend) {
        if (b->backend == GPUCONV_BACKEND_CUDA)
            (void)gc_backend_fail_missing(GPUCONV_ERROR_UNSUPPORTED, why);
        return GPUCONV_OK;
    }
    const gc_batch_backend *gpu = backend->batch;
    int found = gpu->devices(why), count = found == 0 ? 0 : b->device ? b->devices : (int)gc_min(found, count_max);
    count = (int)gc_min(count, GC_BATCH_DEVICES);
    for (int i = 0; i < count; i++) {
        s->device[i] = b->device ? b->device[i] : i;
        if (s->device[i] < 0 || s->device[i] >= found)
            return gc_fail(error, GPUCONV_ERROR_DEVICE, "CUDA device %d does not exist; there are 0 to %d",
                           s->device[i], found - 1);
        s->progress.device[i] = s->device[i];
    }
    if (count == 0 || gpu->init_device(s->device[0], why) != GPUCONV_OK)
        return GPUCONV_OK;
    s->backend = gpu;
    s->devices = s->progress.devices = count;
    return GPUCONV_OK;
}

/* Chooses between CPU and GPUs, and the number of workers. */
static gpuconv_status choose_devices(gc_batch_state *s, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    gpuconv_error why = {0};
    gpuconv_status status = GPUCONV_OK;
    s->backend = gc_backend_find(GPUCONV_BACKEND_CPU)->batch;
    s->workers = b->workers > 0 ? b->workers : gc_processor_count();
    const int64_t gpus_worthwhile = b->manifest->entries / (entries_per_gpu * s->workers);
    if (b->backend == GPUCONV_BACKEND_CUDA)
        status = select_devices(s, GC_BATCH_DEVICES, &why, error);
    else if (b->backend == GPUCONV_BACKEND_AUTO && gpus_worthwhile > 0)
        status = select_devices(s, gpus_worthwhile, &why, error);
    if (status)
        return status;
    if (b->backend == GPUCONV_BACKEND_CUDA && s->devices == 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "%s", why.message);
    if (why.status && b->note && gc_batch_is_first_rank(s)) {
        char text[600];
        (void)snprintf(text, sizeof text, "running on the CPU: %s", why.message);
        b->note(b->context, text);
    }
    s->workers = (int)gc_max(s->workers, s->devices);
    s->workers = (int)gc_max(1, gc_min(s->workers, gc_batch_has_ranks(s) ? s->workers : b->manifest->entries));
    return GPUCONV_OK;
}

/* Opens results.jsonl and lists the entries to do: all, or with --resume the unfinished ones. */
static gpuconv_status list_entries(gc_batch_state *s, const char *results, gpuconv_error *error) {
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
    for (int64_t i = 0; i < m->entries && !status; i++) {
        if (!done[i])
            s->todo[s->todo_count++] = i;
        if (!done[i] && s->packer)
            gc_packer_expect(s->packer, i);
    }
    if (!status)
        s->progress.skipped = m->entries - s->todo_count;
    gc_history_free(history);
    free(done);
    return status;
}

/* Locks the folder, checks the entries against it, and lists those to do. */
static gpuconv_status prepare_first_rank(gc_batch_state *s, const char *results, gpuconv_error *error) {
    const gc_batch *b = s->batch;
    char kept[GC_OWN_PATH];
    const gc_own_files own = gc_batch_own_files(b);
    gpuconv_status status = gc_batch_lock_folder(s, error);
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

gpuconv_status gc_batch_prepare(gc_batch_state *s, gpuconv_error *error) {
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
    if (!status && gc_batch_is_first_rank(s))
        status = prepare_first_rank(s, results, error);
    s->responses = status ? NULL : gc_responses_new(responses_bytes, s->backend->free_taps);
    if (!status && !s->responses)
        status = gc_fail_memory(error, "a table of responses");
    return status;
}
