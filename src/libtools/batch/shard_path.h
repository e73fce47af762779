/* Paths of members of shards: in shards/000.tar/key.flac, where shards/000.tar is a regular file, key.flac is a member.
 */
#ifndef GPUCONV_BATCH_SHARD_PATH_H
#define GPUCONV_BATCH_SHARD_PATH_H

#include <stddef.h>

/* Copies the path of the shard that a path leads into. @return the member's name in `path`; NULL: it leads into none */
const char *gc_shard_split(const char *path, char *shard, size_t room);

#endif
