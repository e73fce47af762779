/* Names of outputs in lists. */
#include "list_output.h"

#include "own_files.h"
#include "text.h"

char *gc_list_path(const gc_list_output *o, const gc_entry *e, int64_t index) {
    char shard[GC_OWN_SHARD] = "", *path = NULL;
    if (o->shard_size > 0)
        gc_own_shard(index / o->shard_size, shard);
    return gc_text_append(&path, "%s/%s%s%s", o->folder, shard, *shard ? "/" : "", e->output) ? path : NULL;
}

const char *gc_list_id(const gc_entry *e) {
    return e->extra && e->extra->id ? e->extra->id : e->output;
}
