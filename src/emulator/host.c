/* The functions of CUDA that solve calls. */
#include "state.h"

#include <string.h>

void *gc_on_allocate(unsigned long bytes) {
    const gc_region *region = gc_memory_allocate("the memory of cudaMalloc", bytes ? bytes : 1);
    return region ? (void *)region->begin : NULL;
}

int gc_on_release(void *memory) {
    gc_region *region = gc_memory_find((uintptr_t)memory);
    if (!memory)
        return 0;
    if (!region || region->begin != (uintptr_t)memory || !region->owned)
        return 1;
    region->freed = true;
    return 0;
}

int gc_on_set_error(int code) {
    return gc_emulated.last_error = code;
}

int gc_on_last_error(int clear) {
    int code = gc_emulated.last_error;
    if (clear)
        gc_emulated.last_error = 0;
    return code;
}

/* Checks that a copy or fill stays within one buffer. Returns its region, or NULL for memory of the host. */
static gc_region *check_range(const void *memory, unsigned long bytes, int line) {
    gc_region *region = gc_memory_find((uintptr_t)memory);
    if (!region) {
        region = gc_memory_nearest((uintptr_t)memory);
        if (!region || !region->owned)
            return NULL;
    }
    uint64_t offset = (uintptr_t)memory - region->begin;
    if (offset > region->bytes || bytes > region->bytes - offset)
        gc_stop(NULL, line, "The size is in bytes: count * sizeof(float).",
                "copies or sets %lu bytes of %s, which has %llu from there on.", bytes, region->name,
                (unsigned long long)(offset > region->bytes ? 0 : region->bytes - offset));
    return region;
}

static void note_set(gc_region *region, const void *memory, unsigned long bytes, int line) {
    if (region && gc_memory_set(region, (uintptr_t)memory - region->begin, bytes))
        gc_stop(NULL, line, "", "the emulator is out of memory.");
}

void gc_on_copy(void *to, const void *from, unsigned long bytes, int line) {
    if (!bytes)
        return;
    (void)check_range(from, bytes, line);
    gc_region *region = check_range(to, bytes, line);
    memmove(to, from, bytes);
    note_set(region, to, bytes, line);
}

void gc_on_fill(void *to, int byte, unsigned long bytes, int line) {
    if (!bytes)
        return;
    gc_region *region = check_range(to, bytes, line);
    if (!region)
        gc_stop(NULL, line, "", "sets memory that belongs to no buffer.");
    memset(to, byte, bytes);
    note_set(region, to, bytes, line);
}
