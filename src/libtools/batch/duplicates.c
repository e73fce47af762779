/* Finds entries with the same output or the same response. */
#include "duplicates.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/map.h"

#include <string.h>

/* Returns the first entry with a name: an earlier one, or `e` itself. NULL: out of memory. */
static gc_entry *find_or_insert(gc_map *map, const char *name, gc_entry *e) {
    void **first = gc_map_put(map, name, strlen(name));
    if (first && !*first)
        *first = e;
    return first ? *first : NULL;
}

/* Inserts an output, or refuses the entry if an earlier output has the name. @return false: out of memory */
static bool add_output(gc_map *outputs, const char *name, gc_entry *e) {
    const int64_t before = outputs->count;
    return !name || (find_or_insert(outputs, name, e) &&
                     (outputs->count > before || gc_entry_refuse(e, "an earlier entry has the output", name)));
}

gpuconv_status gc_find_duplicates(gc_manifest *m, gpuconv_error *error) {
    gc_map outputs = {0}, responses = {0};
    bool good = true;
    for (int64_t i = 0; i < m->entries && good; i++) {
        gc_entry *e = &m->entry[i];
        if (e->refusal)
            continue;
        good = add_output(&outputs, e->output, e) && (e->refusal || add_output(&outputs, gc_entry_early(e), e));
        gc_entry *first = good && !e->refusal ? find_or_insert(&responses, e->response, e) : e;
        good = good && first;
        if (first && first != e)
            first->shared = e->shared = true;
    }
    gc_map_free(&outputs);
    gc_map_free(&responses);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}
