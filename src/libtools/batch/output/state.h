/* The state of a file: size, time of the last change and, if these do not suffice, a digest of its content. A batch
 * writes states into results.jsonl, so that --resume can decide whether a file is still the one that was read or
 * written. */
/* Paths of members of shards: in shards/000.tar/key.flac, where shards/000.tar is a regular file, key.flac is a member.
 */
#ifndef GPUCONV_BATCH_OUTPUT_STATE_H
#define GPUCONV_BATCH_OUTPUT_STATE_H

#include "gpuconv.h"

#include <stddef.h>
#include <sys/stat.h>

typedef struct gc_state {
    int64_t size; /* bytes; -1: the file is missing or not a regular file; the state equals no other */
    int64_t seconds, nanoseconds;
    uint64_t device, inode;
    bool digested;
    uint64_t digest; /* of the content */
} gc_state;

enum { GC_STATE_TEXT = 160 };

gc_state gc_state_of_path(const char *path);

/* Returns a state for two files, such as the inputs of one entry, with the place of the first. */
gc_state gc_state_join(const gc_state *a, const gc_state *b);

/* Returns the state of a response. A matrix file names further files, so its state has a digest of the response that it
 * describes; this reads all of them. That of a room (room_set.h) is the state of the file that it names, or empty. */
gc_state gc_state_of_response(const char *response);

/* Writes the state as SIZE@SECONDS.NANOSECONDS, then #DIGEST if it has one. */
void gc_state_print(const gc_state *state, char text[GC_STATE_TEXT]);

/* Reads what gc_state_print wrote. @return false, with a state that equals no other, if the text is anything else. */
bool gc_state_parse(const char *text, gc_state *state);

/* Compares size, time and digest. */
bool gc_state_same(const gc_state *a, const gc_state *b);

/* Copies the path of the shard that a path leads into. @return the member's name in `path`; NULL: it leads into none */
const char *gc_shard_split(const char *path, char *shard, size_t room);

#endif
