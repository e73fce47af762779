/* Calls the batch of libtools, as the command does, so that names, picks and bytes are the same. */
#include "batch_job.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/error.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/run/batch.h"

#include <stdio.h>
#include <stdlib.h>

static gcpy_counts counts_of(const gc_batch_progress *p) {
    return (gcpy_counts){p->total, p->done, p->failed, p->clipped, p->skipped, p->seconds, p->audio};
}

static void progress(void *context, const gc_batch_progress *p) {
    const gcpy_batch *batch = context;
    const gcpy_counts counts = counts_of(p);
    batch->progress(batch->context, &counts);
}

static void note(void *context, const char *text) {
    const gcpy_batch *batch = context;
    batch->note(batch->context, text);
}

static void failures(void *context, int64_t count, const char *example) {
    const gcpy_batch *batch = context;
    char text[700];
    (void)snprintf(text, sizeof text, "%lld failed like this: %s", (long long)count, example);
    batch->note(batch->context, text);
}

/* Fills and checks the row of defaults, which is to be cleared also after a failure. */
static gpuconv_status make_defaults(const gcpy_batch *batch, gc_entry_texts *row, gpuconv_error *error) {
    char *reason = NULL;
    int at = -1;
    bool good = true;
    for (int i = 0; i < batch->texts && good; i++) {
        const int column = gc_column_find(batch->text[i].column);
        if (column < 0)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "no column '%s'", batch->text[i].column);
        good = gc_texts_set(row, column, batch->text[i].value);
    }
    if (!good || !gc_texts_check(row, &at, &reason))
        return gc_fail_memory(error, "the options of a batch");
    if (!reason)
        return GPUCONV_OK;
    const char *name = at == GC_COLUMN_EARLY_MS ? "early" : gc_columns[at < 0 ? 0 : at];
    const gpuconv_status status =
        at < 0 ? gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s", reason)
               : gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: must be %s, not '%s'", name, reason, row->text[at]);
    free(reason);
    return status;
}

/* Reads the manifest, or makes one from the patterns. */
static gpuconv_status make_manifest(const gcpy_batch *batch, gc_manifest *manifest, gpuconv_error *error) {
    gc_entry_texts defaults = {.stem = NULL};
    gpuconv_status status = make_defaults(batch, &defaults, error);
    const gc_manifest_options options = {.defaults = &defaults,
                                         .responses = batch->responses,
                                         .noises = batch->noises,
                                         .pick = (gc_pick)batch->pick,
                                         .seed = batch->seed,
                                         .segments = batch->segments};
    if (!status)
        status = batch->manifest ? gc_manifest_read(batch->manifest, &options, manifest, error)
                                 : gc_manifest_pick(batch->inputs, &options, manifest, error);
    gc_texts_clear(&defaults);
    return status;
}

gpuconv_status gcpy_batch_run(const gcpy_batch *batch, gcpy_counts *counts, gpuconv_error *error) {
    gc_manifest manifest;
    gc_batch_progress last = {0};
    *counts = (gcpy_counts){0};
    gpuconv_status status = make_manifest(batch, &manifest, error);
    if (status)
        return status;
    const gc_batch b = {.manifest = &manifest,
                        .folder = batch->folder,
                        .keep_manifest = batch->responses || batch->noises,
                        .backend = (gpuconv_backend)batch->backend,
                        .workers = batch->workers,
                        .device = batch->device,
                        .devices = batch->devices,
                        .resume = batch->resume,
                        .fail_fast = batch->fail_fast,
                        .shard_size = batch->shard_size,
                        .id_suffix = batch->id_suffix,
                        .absolute = batch->absolute,
                        .cancel = batch->cancel,
                        .progress = progress,
                        .note = note,
                        .failures = failures,
                        .context = (void *)batch};
    status = gc_batch_run(&b, &last, error);
    *counts = counts_of(&last);
    gc_manifest_free(&manifest);
    return status;
}

bool gcpy_has_cuda(void) {
    return gc_backend_find(GPUCONV_BACKEND_CUDA) != NULL;
}
