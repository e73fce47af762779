/* Allocation with overflow checks, and huge pages for large blocks. */
#include "memory.h"

#include "cancel.h"
#include "os.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of at least half a huge page get whole ones: fewer page faults and TLB misses when a buffer is streamed
 * through. */
static const int64_t huge_page = INT64_C(2) << 20;

/* Larger requests are compared with the available memory. */
static const int64_t large = INT64_C(64) << 20;

/* Bytes that are written between two looks at the flag: ten milliseconds on a busy machine, page faults included. */
static const int64_t piece_bytes = INT64_C(4) << 20;

bool gc_set_memory(void *to, int value, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += piece_bytes) {
        if (bytes > piece_bytes && gc_cancelled())
            return false;
        memset((char *)to + at, value, (size_t)gc_min(piece_bytes, bytes - at));
    }
    return true;
}

bool gc_copy_memory(void *to, const void *from, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += piece_bytes) {
        if (bytes > piece_bytes && gc_cancelled())
            return false;
        memcpy((char *)to + at, (const char *)from + at, (size_t)gc_min(piece_bytes, bytes - at));
    }
    return true;
}

/* Allocates at least count x size bytes and stores their number in *bytes. */
static void *allocate(int64_t count, int64_t size, int64_t *bytes) {
    if (count < 0 || size < 0 || __builtin_mul_overflow(count, size, bytes) || *bytes > INT64_MAX - 2 * huge_page)
        return NULL;
    int64_t alignment = *bytes >= huge_page / 2 ? huge_page : GC_ALIGNMENT;
    *bytes = gc_round_up(*bytes ? *bytes : 1, alignment);
    if (*bytes > large && *bytes > gc_memory_available())
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
    if (!p || gc_set_memory(p, 0, bytes))
        return p;
    free(p);
    return NULL;
}

bool gc_buffer_append(gc_buffer *b, const void *bytes, size_t count) {
    if (b->length + count + 1 > b->room) {
        const size_t room = 2 * (b->length + count) + 256;
        char *larger = realloc(b->bytes, room);
        if (!larger)
            return false;
        b->bytes = larger;
        b->room = room;
    }
    if (count)
        memcpy(b->bytes + b->length, bytes, count);
    b->length += count;
    b->bytes[b->length] = '\0';
    return true;
}
