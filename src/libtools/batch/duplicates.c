/* Finds entries with the same output or the same response, with a hash table of each. */
#include "duplicates.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/hash.h"
#include "libgpuconv/core/memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct table {
    gc_entry *
        *slot; /* the first entry with each name, or NULL; their number is a power of two, at least half are free */
    uint64_t mask;
    size_t member; /* offset of the name in an entry */
} table;

static const char *name_of(const table *t, const gc_entry *e) {
    return *(char *const *)(const void *)((const char *)e + t->member);
}

/* Returns the first entry with the name of `e`: an earlier one, or `e` itself, which is then inserted. */
static gc_entry *find_or_insert(const table *t, gc_entry *e) {
    const char *name = name_of(t, e);
    uint64_t at = gc_hash(name);
    for (;; at++) {
        gc_entry **slot = &t->slot[at & t->mask];
        if (!*slot)
            *slot = e;
        if (*slot == e || strcmp(name_of(t, *slot), name) == 0)
            return *slot;
    }
}

static bool new_table(table *t, const gc_manifest *m, size_t member) {
    int64_t slots = 64;
    while (slots < 2 * m->entries)
        slots *= 2;
    *t = (table){gc_calloc(slots, (int64_t)sizeof(gc_entry *)), (uint64_t)slots - 1, member};
    return t->slot != NULL;
}

gpuconv_status gc_find_duplicates(gc_manifest *m, gpuconv_error *error) {
    table outputs = {0}, responses = {0};
    bool good =
        new_table(&outputs, m, offsetof(gc_entry, output)) && new_table(&responses, m, offsetof(gc_entry, response));
    for (int64_t i = 0; i < m->entries && good; i++) {
        gc_entry *e = &m->entry[i];
        if (e->refusal)
            continue;
        if (find_or_insert(&outputs, e) != e) {
            good = gc_entry_refuse(e, "an earlier entry has the output", e->output);
            continue;
        }
        gc_entry *first = find_or_insert(&responses, e);
        if (first != e)
            first->shared = e->shared = true;
    }
    free((void *)outputs.slot);
    free((void *)responses.slot);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}
