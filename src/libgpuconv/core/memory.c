/* Allocation with overflow checks, and huge pages for large blocks. */
#include "memory.h"

#include "cancel.h"
#include "os.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of at least half a huge page get whole ones: fewer page faults and TLB misses when a buffer is streamed
 * through. */
static const int64_t huge_page = INT64_C(2) << 20;

/* Larger requests are compared with the available memory, and zeroed in pieces of this size. */
static const int64_t piece_bytes = INT64_C(64) << 20;

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
    return gc_os_allocate(alignment, *bytes, alignment == huge_page);
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
