/* Splits paths into that of a shard and the name of a member. */
#include "shard_path.h"

#include <string.h>
#include <sys/stat.h>

const char *gc_shard_split(const char *path, char *shard, size_t room) {
    struct stat st;
    for (const char *at = path; (at = strstr(at, ".tar/")); at++) {
        size_t length = (size_t)(at - path) + 4;
        if (length >= room)
            return NULL;
        memcpy(shard, path, length);
        shard[length] = '\0';
        if (stat(shard, &st) == 0 && S_ISREG(st.st_mode))
            return path[length + 1] ? path + length + 1 : NULL;
    }
    return NULL;
}
