/* Prints what a batch would do. */
#include "dry_run.h"

#include "cli/cli.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "libtools/batch/output/folder.h"
#include "libtools/batch/output/results.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 10, NAME = 600 };

static void print_row(const gc_batch *b, int64_t index) {
    const gc_entry *e = &b->manifest->entry[index];
    char name[NAME];
    char *settings = gc_settings_of(e);
    printf("%lld:", (long long)e->line);
    for (int i = 0; i < gc_entry_sources(e); i++) {
        const gc_source s = gc_entry_source(e, i);
        printf("%s %s", i ? " +" : "", gc_visible(name, sizeof name, s.input));
        printf(" * %s", gc_visible(name, sizeof name, s.response));
    }
    if (gc_entry_noise(e))
        gc_print(stdout, " + %s at %g dB", gc_visible(name, sizeof name, gc_entry_noise(e)), e->extra->snr);
    printf(" -> %s/", gc_visible(name, sizeof name, b->folder));
    if (b->shard_size > 0) {
        char shard[GC_OWN_SHARD];
        gc_own_shard(index / b->shard_size, shard);
        printf("%s/", shard);
    }
    printf("%s\n", gc_visible(name, sizeof name, e->output));
    if (settings)
        printf("    %s\n", gc_visible(name, sizeof name, settings));
    free(settings);
}

int gc_dry_run(const gc_batch *b) {
    static gc_failures refused;
    const gc_manifest *m = b->manifest;
    const gc_own_files own = gc_batch_own_files(b);
    gpuconv_error error = {0};
    int64_t shown = 0, bad = 0;
    char text[GC_FAILURE_BYTES];
    refused.count = 0;
    gpuconv_status status = gc_refuse_conflicts(b->manifest, &own, 1, &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
    for (int64_t i = 0; i < m->entries; i++) {
        if (m->entry[i].refusal) {
            (void)snprintf(text, sizeof text, "line %lld: %s", (long long)m->entry[i].line, m->entry[i].refusal);
            gc_failures_add(&refused, text);
            bad++;
        } else if (shown++ < ROWS) {
            print_row(b, i);
        }
    }
    if (shown > ROWS)
        printf("... and %lld more\n", (long long)(shown - ROWS));
    printf("%lld rows; nothing was written\n", (long long)m->entries);
    gc_failures_sort(&refused);
    for (int i = 0; i < refused.count; i++)
        printf("%lld refused like this: %s\n", (long long)refused.group[i].count, refused.group[i].example);
    return bad == m->entries ? GC_EXIT_FAILED : GC_EXIT_DONE;
}
