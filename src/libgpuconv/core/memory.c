/* Aligned, zeroed, overflow-checked allocation. */
#include "memory.h"

#include "cancel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From here on whole huge pages pay: fewer faults and fewer address translations for buffers that are swept. */
static const int64_t huge_page = INT64_C(2) << 20;

/* Larger requests are held against the memory that is free, and zeroed in pieces of this size. */
static const int64_t large = INT64_C(64) << 20;

/* Bytes in a file that holds one number; -1: no such file, or "max". */
static int64_t number_in(const char *path) {
    long long bytes;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%lld", &bytes) != 1) /* NOLINT(cert-err34-c): a number of the kernel's */
        bytes = -1;
    fclose(f); /* read only: nothing can be lost */
    return bytes;
}

/* The limit of this process's control group. What is used of it is no guide: the pages of files count too, and are
 * given back when memory is wanted. */
static int64_t group_limit(void) {
    int64_t limit = number_in("/sys/fs/cgroup/memory.max");
    if (limit < 0)
        limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return limit > 0 ? limit : INT64_MAX;
}

int64_t gc_memory_free(void) {
    char line[128];
    long long kilobytes;
    int64_t available = INT64_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1) /* NOLINT(cert-err34-c): the kernel's */
            available = (int64_t)kilobytes * 1024;
    if (f)
        fclose(f); /* read only: nothing can be lost */
    return gc_min(available, group_limit());
}

/* Zeroes memory. False: cancelled. */
static bool zero(char *p, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += large) {
        if (bytes > large && gc_cancelled())
            return false;
        memset(p + at, 0, (size_t)gc_min(large, bytes - at));
    }
    return true;
}

void *gc_calloc(int64_t count, int64_t size) {
    int64_t bytes;
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, &bytes) || bytes > INT64_MAX - 2 * huge_page)
        return NULL;
    int64_t alignment = bytes >= 2 * huge_page ? huge_page : GC_ALIGNMENT;
    bytes = gc_round_up(bytes ? bytes : 1, GC_ALIGNMENT);
    if (bytes > large && bytes > gc_memory_free())
        return NULL;
    void *p = NULL;
    if (posix_memalign(&p, (size_t)alignment, (size_t)bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == huge_page)
        (void)madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* a hint: nothing is wrong when it is not taken */
#endif
    if (zero(p, bytes))
        return p;
    free(p);
    return NULL;
}
