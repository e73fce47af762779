/* Calls the tools of the command, src/gpuconv/batch and src/gpuconv/room, so that names, picks and figures are the
 * same. */
#include "batch_job.h"

#include "gpuconv/batch/batch.h"
#include "gpuconv/room/acoustics.h"
#include "libgpuconv/core/error.h"

#include <stdio.h>

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

/* Reads the manifest, or makes one from the patterns and writes it to the folder. */
static gpuconv_status make_manifest(const gcpy_batch *batch, gc_manifest *manifest, gpuconv_error *error) {
    char path[4200];
    const char *const inputs[] = {batch->inputs, NULL}, *const responses[] = {batch->responses, NULL};
    const gc_manifest_options options = {.responses = responses, .pick = (gc_pick)batch->pick, .seed = batch->seed};
    if (batch->manifest)
        return gc_manifest_read(batch->manifest, NULL, manifest, error);
    if (snprintf(path, sizeof path, "%s/manifest.csv", batch->folder) >= (int)sizeof path)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the name of the folder is too long");
    gpuconv_status status = gc_manifest_pick(inputs, &options, manifest, error);
    if (status)
        return status;
    status = gc_manifest_write(manifest, path, error);
    if (status)
        gc_manifest_free(manifest);
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
                        .backend = (gpuconv_backend)batch->backend,
                        .workers = batch->workers,
                        .resume = batch->resume,
                        .fail_fast = batch->fail_fast,
                        .cancel = batch->cancel,
                        .progress = progress,
                        .note = note,
                        .context = (void *)batch};
    status = gc_batch_run(&b, &last, error);
    *counts = counts_of(&last);
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
