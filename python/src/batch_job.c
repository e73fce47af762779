/* Calls the tools of the command, src/gpuconv/batch and src/gpuconv/room, so that names, picks and figures are the
 * same. */
#include "batch_job.h"

#include "gpuconv/batch/batch.h"
#include "gpuconv/batch/list_write.h"
#include "gpuconv/batch/row.h"
#include "gpuconv/room/acoustics.h"
#include "libgpuconv/core/error.h"

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
    char text[1200];
    (void)snprintf(text, sizeof text, "%lld failed like this: %s", (long long)count, example);
    note(context, text);
}

/* Fills in the row of defaults, and checks it. */
static gpuconv_status fill_defaults(const gcpy_batch *batch, gc_row *row, gpuconv_error *error) {
    char *why;
    int column;
    *row = (gc_row){.stem = NULL};
    for (int i = 0; batch->column[i]; i++) {
        column = gc_column_find(batch->column[i]);
        if (column < GC_COLUMN_GAIN || column == GC_COLUMN_EARLY || column == GC_COLUMN_ID)
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%.60s: there is no such setting", batch->column[i]);
        if (!gc_row_set(row, column, batch->value[i]))
            return gc_fail_memory(error, "a batch");
    }
    if (!gc_defaults_check(row, &column, &why))
        return gc_fail_memory(error, "a batch");
    if (why && column >= 0)
        (void)gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s %s '%.60s'", gc_columns[column], why, row->text[column]);
    else if (why)
        (void)gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the settings are not valid for any file: %s", why);
    free(why);
    return why ? GPUCONV_ERROR_ARGUMENT : GPUCONV_OK;
}

static gpuconv_status keep_manifest(const gcpy_batch *batch, const gc_manifest *manifest, gpuconv_error *error) {
    char path[4200];
    if (snprintf(path, sizeof path, "%s/manifest.csv", batch->folder) >= (int)sizeof path)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the name of the folder is too long");
    return gc_manifest_write(manifest, path, error);
}

/* Reads the manifest or list, or makes one from the patterns; what was picked is written to the folder. */
static gpuconv_status make_manifest(const gcpy_batch *batch, gc_manifest *manifest, gpuconv_error *error) {
    gc_row defaults;
    gpuconv_status status = fill_defaults(batch, &defaults, error);
    const gc_manifest_options options = {.defaults = &defaults,
                                         .responses = batch->responses,
                                         .noises = batch->noises,
                                         .pick = (gc_pick)batch->pick,
                                         .seed = batch->seed,
                                         .segments = batch->segments};
    if (!status)
        status = batch->manifest ? gc_manifest_read(batch->manifest, &options, manifest, error)
                                 : gc_manifest_pick(batch->inputs, &options, manifest, error);
    gc_row_clear(&defaults);
    if (status || (!batch->responses && !batch->noises))
        return status;
    status = keep_manifest(batch, manifest, error);
    if (status)
        gc_manifest_free(manifest);
    return status;
}

gpuconv_status gcpy_batch_run(const gcpy_batch *batch, gcpy_counts *counts, gpuconv_error *error) {
    gc_manifest manifest;
    gc_batch_progress last = {0};
    int64_t listed;
    *counts = (gcpy_counts){0};
    gpuconv_status status = make_manifest(batch, &manifest, error);
    if (status)
        return status;
    const gc_batch b = {.manifest = &manifest,
                        .folder = batch->folder,
                        .backend = (gpuconv_backend)batch->backend,
                        .workers = batch->workers,
                        .device = batch->devices ? batch->device : NULL,
                        .devices = batch->devices,
                        .resume = batch->resume,
                        .fail_fast = batch->fail_fast,
                        .shard_size = batch->shard_size,
                        .cancel = batch->cancel,
                        .progress = progress,
                        .note = note,
                        .failures = failures,
                        .context = (void *)batch};
    status = gc_batch_run(&b, &last, error);
    *counts = counts_of(&last);
    if (!status && gc_list_output_name(manifest.kind))
        status = gc_list_write(&manifest, batch->folder, batch->shard_size, &listed, error);
    gc_manifest_free(&manifest);
    return status;
}

gpuconv_status gcpy_acoustics(const float *taps, int64_t frames, double rate, double band, double figures[8],
                              gpuconv_error *error) {
    gc_acoustics a;
    if (!gc_acoustics_of(taps, frames, rate, band, &a, NULL))
        return gc_fail_memory(error, "the response's acoustic parameters");
    const double values[] = {a.edt, a.t20, a.t30, a.c80, a.d50, a.centre, a.noise, a.onset};
    for (int i = 0; i < 8; i++)
        figures[i] = values[i];
    return GPUCONV_OK;
}
