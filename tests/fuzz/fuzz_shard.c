/* Lists a tar file of any bytes and opens its members: each lies inside the file, and is read or refused with a
 * reason. */
#include "gpuconv/batch/shard_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMBERS = 8 };

typedef struct members {
    char *name[MEMBERS];
    int count;
} members;

static void require(bool holds) {
    if (!holds)
        abort();
}

static bool add(void *context, const char *name) {
    members *m = context;
    require(*name != '\0');
    if (m->count < MEMBERS && (m->name[m->count] = strdup(name)))
        m->count++;
    return true;
}

static bool count_sibling(void *context, const char *name, int64_t offset, int64_t size) {
    require(*name && offset >= 0 && size > 0);
    ++*(int *)context;
    return true;
}

/* Finds a member, which may begin in the file and end behind it if the file is cut off. */
static void read_member(const char *shard, const char *name, size_t bytes) {
    int64_t offset, size;
    int siblings = 0;
    require(gc_shard_find(shard, name, &offset, &size) && offset > 0 && size > 0 && offset <= (int64_t)bytes);
    gc_shard_siblings(shard, name, count_sibling, &siblings);
    (void)gc_shard_is_audio(name);
    require(gc_shard_key_length(name) <= strlen(name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    members m = {.count = 0};
    gpuconv_error error = {GPUCONV_OK, ""};
    int fd = memfd_create("shard", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    gpuconv_status status = gc_shard_list(path, add, &m, &error);
    require(!status || *error.message);
    for (int i = 0; i < m.count; i++) {
        if (!status)
            read_member(path, m.name[i], size);
        free(m.name[i]);
    }
    gc_shards_forget();
    close(fd);
    return 0;
}
