/* Lists a tar file of any bytes and finds its members: each lies inside the file, or is refused with a reason. */
#include "libtools/batch/output/shards.h"

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

static bool count_sibling(void *context, const gc_shard_member *m) {
    require(*m->name && (m->why || (m->offset >= 0 && m->size >= 0)));
    ++*(int *)context;
    return true;
}

static void find_member(const char *shard, const char *name, size_t bytes) {
    int64_t offset = 0, size = 0;
    int siblings = 0;
    gpuconv_error error = {GPUCONV_OK, ""};
    if (gc_shard_find(shard, name, &offset, &size, &error))
        require(*error.message);
    else
        require(offset > 0 && size >= 0 && size <= (int64_t)bytes && offset <= (int64_t)bytes - size);
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
        find_member(path, m.name[i], size);
        free(m.name[i]);
    }
    gc_shards_forget();
    close(fd);
    return 0;
}
