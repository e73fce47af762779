/* Prints what a batch would do. */
#include "dry_run.h"

#include "cli/cli.h"
#include "gpuconv/batch/failures.h"
#include "gpuconv/batch/results.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 10, NAME = 600 };

static void print_row(const gc_manifest *m, int64_t index, const char *folder, int64_t shard_size) {
    const gc_entry *e = &m->entry[index];
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
    printf(" -> %s/", gc_visible(name, sizeof name, folder));
    if (shard_size > 0)
        printf("%06lld.tar/", (long long)(index / shard_size));
    printf("%s\n", gc_visible(name, sizeof name, e->output));
    if (settings)
        printf("    %s\n", gc_visible(name, sizeof name, settings));
    free(settings);
}

int gc_dry_run(const gc_manifest *m, const char *folder, int64_t shard_size) {
    static gc_failures refused;
    int64_t shown = 0, bad = 0;
    char text[GC_FAILURE_BYTES];
    refused.count = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        if (m->entry[i].refusal) {
            (void)snprintf(text, sizeof text, "line %lld: %s", (long long)m->entry[i].line, m->entry[i].refusal);
            gc_failures_add(&refused, text);
            bad++;
        } else if (shown++ < ROWS) {
            print_row(m, i, folder, shard_size);
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
