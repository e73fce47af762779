/*
 * Shards: tar files of samples, as webdataset keeps them. state.h has the paths of members. Only tar files without
 * compression are read, because their members are found without reading what precedes them.
 *
 * As output, tar files FOLDER/000000.tar, 000001.tar, ... have a fixed number of entries each, in the order of the
 * manifest. An output is first a file of its own, so that every promise about files holds until the last entry of its
 * shard is done or has failed. Then the shard is written under another name and renamed, and the files are removed.
 *
 *      killed before the rename     the files are still there: --resume continues with them
 *      killed after it              the shard has all outputs: --resume removes the files that are left
 *
 * A file that has the name of an output whose entry failed is an older one: it is not packed, and stays.
 *
 * If --resume does an entry of a shard that exists (it had failed before), the shard is written again, from the files
 * and from the members of the old one. The bytes of a shard depend only on the manifest: members have no time and no
 * owner. The other members of an input's sample are copied.
 */
#ifndef GPUCONV_BATCH_OUTPUT_SHARDS_H
#define GPUCONV_BATCH_OUTPUT_SHARDS_H

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"
#include "libtools/batch/entry/entry.h"

/* ---- Input ---- */

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

/* ---- Output ---- */

typedef struct gc_packer gc_packer;

typedef struct gc_packer_config {
    const gc_manifest *manifest;
    const char *folder;
    int64_t size;                                  /* entries of a shard */
    bool resume;                                   /* outputs of older shards are kept */
    void (*note)(void *context, const char *text); /* receives messages for the user; or NULL */
    void *context;
} gc_packer_config;

/* Creates a packer. NULL: out of memory. */
gc_packer *gc_packer_new(const gc_packer_config *config);
void gc_packer_free(gc_packer *packer);

/* Decides whether an entry's output is in a shard; *bytes: its size. Any thread may call it. */
bool gc_packer_has(const gc_packer *packer, int64_t entry, int64_t *bytes);

/* Announces an entry that will be processed; before the first gc_packer_end. */
void gc_packer_expect(gc_packer *packer, int64_t entry);

/* Records that an entry was processed, and packs its shard if it was the last. Any thread may call it. Fails with FILE
 * or MEMORY. */
gpuconv_status gc_packer_end(gc_packer *packer, int64_t entry, bool failed, gpuconv_error *error);

/* Packs the shards without expected entries of which files are left. */
gpuconv_status gc_packer_pack_rest(gc_packer *packer, gpuconv_error *error);

/* Forgets what is expected, because other ranks have done it. done[entry]: its output is that of this batch. */
void gc_packer_expect_none(gc_packer *packer, const unsigned char *done);

#endif
