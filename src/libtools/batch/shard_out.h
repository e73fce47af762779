/*
 * Shards as output: packs the outputs of a batch into tar files FOLDER/000000.tar, 000001.tar, ... of a fixed number of
 * entries each, in the order of the manifest. An output is first a file of its own, so that every promise about files
 * holds until the last entry of its shard is done or has failed. Then the shard is written under another name and
 * renamed, and the files are removed.
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
#ifndef GPUCONV_BATCH_SHARD_OUT_H
#define GPUCONV_BATCH_SHARD_OUT_H

#include "manifest.h"

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
