/* Allocation through posix_memalign, with huge pages for large blocks. */
#include "memory.h"

#include "cancel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of at least half a huge page get whole ones: fewer page faults and TLB misses when a buffer is streamed
 * through. */
static const int64_t huge_page = INT64_C(2) << 20;

/* Larger requests are compared with the available memory, and zeroed in pieces of this size. */
static const int64_t piece_bytes = INT64_C(64) << 20;

/* Returns the number that a file of the kernel holds, or -1 if the file does not exist or holds "max". */
static int64_t read_number(const char *path) {
    long long bytes;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%lld", &bytes) != 1) /* NOLINT(cert-err34-c): the kernel writes valid numbers */
        bytes = -1;
    fclose(f); /* opened for reading: no data can be lost */
    return bytes;
}

/* Returns the memory limit of this process's control group. Its current usage is not subtracted: it includes the page
 * cache, which the kernel reclaims on demand. */
static int64_t cgroup_limit(void) {
    int64_t limit = read_number("/sys/fs/cgroup/memory.max");
    if (limit < 0)
        limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return limit > 0 ? limit : INT64_MAX;
}

int64_t gc_memory_available(void) {
    char line[128];
    long long kilobytes;
    int64_t available = INT64_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) /* NOLINT(cert-err34-c) */
            available = (int64_t)kilobytes * 1024;
    if (f)
        fclose(f); /* opened for reading: no data can be lost */
    return gc_min(available, cgroup_limit());
}

/* Zeroes memory. Returns false if the thread's flag was raised. */
static bool zero_memory(char *p, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += piece_bytes) {
        if (bytes > piece_bytes && gc_cancelled())
            return false;
        memset(p + at, 0, (size_t)gc_min(piece_bytes, bytes - at));
    }
    return true;
}

/* Allocates at least count x size bytes and stores their number in *bytes. */
static void *allocate(int64_t count, int64_t size, int64_t *bytes) {
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, bytes) || *bytes > INT64_MAX - 2 * huge_page)
        return NULL;
    int64_t alignment = *bytes >= huge_page / 2 ? huge_page : GC_ALIGNMENT;
    *bytes = gc_round_up(*bytes ? *bytes : 1, alignment);
    if (*bytes > piece_bytes && *bytes > gc_memory_available())
        return NULL;
    void *p = NULL;
    if (posix_memalign(&p, (size_t)alignment, (size_t)*bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == huge_page)
        (void)madvise(p, (size_t)*bytes, MADV_HUGEPAGE); /* only a hint: a failure is harmless */
#endif
    return p;
}

void *gc_alloc(int64_t count, int64_t size) {
    int64_t bytes;
    return allocate(count, size, &bytes);
}

void *gc_calloc(int64_t count, int64_t size) {
    int64_t bytes;
    void *p = allocate(count, size, &bytes);
    if (!p || zero_memory(p, bytes))
        return p;
    free(p);
    return NULL;
}
