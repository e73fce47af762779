/* Shards as input: tar files of samples, as webdataset keeps them. shard_path.h has their paths. Only tar files without
 * compression are read, because their members are found without reading what precedes them. */
#ifndef GPUCONV_BATCH_SHARD_IN_H
#define GPUCONV_BATCH_SHARD_IN_H

#include "libgpuconv/audio/file.h"

/* Opens an audio file, which may be a member of a shard. Fails as gc_reader_open. */
gpuconv_status gc_shard_open(const char *path, const gc_input_options *options, gc_reader **reader,
                             gpuconv_error *error);

/* A member that is no folder. A hard link has the place of the member that it names. */
typedef struct gc_shard_member {
    char *name;
    int64_t offset, size; /* of its bytes in the shard */
    const char *why;      /* it cannot be read, for this reason; NULL: it can */
} gc_shard_member;

/* Calls `add` for each member of a shard, in their order, until it returns false. Fails with FILE, with FORMAT (damaged
 * or cut off: `add` was called for the members before that), UNSUPPORTED or MEMORY. */
gpuconv_status gc_shard_list(const char *shard, bool (*add)(void *context, const char *member), void *context,
                             gpuconv_error *error);

/* Finds a member that can be read. *offset, *size: its bytes in the shard. `error` may be NULL. Fails as gc_shard_list,
 * also with FILE or FORMAT if the shard has no such member or it cannot be read. */
gpuconv_status gc_shard_find(const char *shard, const char *member, int64_t *offset, int64_t *size,
                             gpuconv_error *error);

/* Calls `add` for the members, wherever they stand, that belong to the same sample, because their names up to the first
 * dot of the file name are equal, and are not the member itself, until it returns false. */
void gc_shard_siblings(const char *shard, const char *member,
                       bool (*add)(void *context, const gc_shard_member *sibling), void *context);

/* Returns the length of the key in a member's name: up to the first dot behind the last slash. */
size_t gc_shard_key_length(const char *member);

/* Frees the indices that are kept of the last shards. No other function of this file may run. */
void gc_shards_forget(void);

/* Decides by its extension whether a member is an audio file. */
bool gc_shard_is_audio(const char *member);

#endif
