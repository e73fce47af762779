/* Compares paths with the names of a batch's own files. */
#include "own_files.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lists[] = {[GC_LIST_KALDI] = "wav.scp",
                                    [GC_LIST_RECORDINGS] = "recordings.jsonl.gz",
                                    [GC_LIST_CUTS] = "cuts.jsonl.gz",
                                    [GC_LIST_METADATA_CSV] = "metadata.csv",
                                    [GC_LIST_METADATA_JSONL] = "metadata.jsonl"};

/* The other files of a data folder of Kaldi. */
static const char *const of_kaldi[] = {GC_OWN_TEXT, GC_OWN_SPEAKERS, GC_OWN_UTTERANCES, GC_OWN_SEGMENTS};

const char *gc_own_list(gc_list_kind kind) {
    return lists[kind];
}

void gc_own_shard(int64_t index, char name[GC_OWN_SHARD]) {
    (void)snprintf(name, GC_OWN_SHARD, "%06lld.tar", (long long)index);
}

gpuconv_status gc_own_path(const char *folder, const char *name, char path[GC_OWN_PATH], gpuconv_error *error) {
    if (snprintf(path, GC_OWN_PATH, "%s/%s", folder, name) < GC_OWN_PATH)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s/%s: the name is too long", folder, name);
}

/* Decides whether the first component of a path is `name`: as a folder of that name it is in the way, too. */
static bool begins(const char *path, const char *name) {
    return name && strlen(name) == strcspn(path, "/") && gc_begins_with(path, name);
}

/* Decides the same for the files of a data folder of Kaldi, which only a batch of one writes: their names are those
 * that folders of other corpora may have. */
static bool begins_with_kaldi(const gc_own_files *own, const char *path) {
    bool found = false;
    if (own->kind != GC_LIST_KALDI)
        return false;
    for (size_t i = 0; i < sizeof of_kaldi / sizeof *of_kaldi && !found; i++)
        found = begins(path, of_kaldi[i]);
    return found;
}

/* Decides whether the first component of a path is the name of one of the batch's shards. */
static bool begins_with_shard(const gc_own_files *own, const char *path) {
    char name[GC_OWN_SHARD];
    const long long index = strtoll(path, NULL, 10);
    if (own->shard_size <= 0 || index < 0 || index > (own->entries - 1) / own->shard_size)
        return false;
    gc_own_shard(index, name);
    return begins(path, name);
}

bool gc_own_is_temporary(const char *path) {
    const char *slash = strrchr(path, '/');
    return gc_begins_with(slash ? slash + 1 : path, GC_OWN_TEMPORARIES);
}

bool gc_own_reserves(const gc_own_files *own, const char *path) {
    bool found = begins(path, GC_OWN_RESULTS) || begins(path, GC_OWN_MANIFEST) || begins(path, GC_OWN_LOCK) ||
                 begins_with_kaldi(own, path) || begins_with_shard(own, path);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !found; i++)
        found = begins(path, lists[i]);
    return found;
}

bool gc_own_replaces(const gc_own_files *own, const char *path) {
    return (!own->resume && begins(path, GC_OWN_RESULTS)) || (own->manifest && begins(path, GC_OWN_MANIFEST)) ||
           begins(path, lists[own->kind]) || begins_with_kaldi(own, path) || begins(path, GC_OWN_LOCK) ||
           begins_with_shard(own, path);
}
