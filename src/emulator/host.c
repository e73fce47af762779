/* The functions of CUDA that solve calls. */
#include "state.h"

#include <string.h>

/* The values of cudaMemcpyKind: a sum of the first two, or the third. */
enum { GC_COPY_TO_DEVICE = 1, GC_COPY_FROM_DEVICE = 2, GC_COPY_DEFAULT = 4 };

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
    if (region->freed)
        gc_stop(NULL, line, "", "copies or sets %s, which cudaFree has released.", region->name);
    uint64_t offset = (uintptr_t)memory - region->begin;
    if (region->element && bytes % region->element != 0)
        gc_stop(NULL, line, "The size is in bytes: count * sizeof(float).",
                "copies or sets %lu byte%s of %s, whose elements have %u.", bytes, bytes == 1 ? "" : "s", region->name,
                region->element);
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

/* Checks one side of a copy against its direction. A variable that is no buffer may be of the host or the device. */
static void check_side(const gc_region *region, bool is_device, const char *direction, const char *verb, int line) {
    if (is_device ? !region : region && region->owned)
        gc_stop(
            NULL, line,
            "cudaMemcpy(to, from, bytes, kind): cudaMemcpyDeviceToDevice copies between what solve gets and memory of "
            "cudaMalloc.",
            "copies with %s, but %s %s, which is memory of the %s.", direction, verb,
            region ? region->name : "a pointer", is_device ? "host" : "device");
}

void gc_on_copy(void *to, const void *from, unsigned long bytes, int kind, int line) {
    static const char *const directions[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                                             "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault"};
    if (kind < 0 || kind > GC_COPY_DEFAULT)
        gc_stop(NULL, line, "", "copies in a direction that CUDA does not have: %d.", kind);
    if (!bytes)
        return;
    gc_region *source = check_range(from, bytes, line), *region = check_range(to, bytes, line);
    if (kind != GC_COPY_DEFAULT) {
        check_side(source, kind & GC_COPY_FROM_DEVICE, directions[kind], "reads from", line);
        check_side(region, kind & GC_COPY_TO_DEVICE, directions[kind], "writes to", line);
    }
    for (unsigned long i = 0; source && source->owned && i < bytes; i++)
        if (!gc_memory_is_set(source, (uintptr_t)from - source->begin + i))
            gc_stop(NULL, line, "cudaMemcpy(to, from, bytes, kind): are the first two arguments exchanged?",
                    "copies from %s, of which byte %lu was never set.", source->name,
                    (unsigned long)((uintptr_t)from - source->begin + i));
    gc_stop_write_to_input(region, NULL, line);
    memmove(to, from, bytes);
    note_set(region, to, bytes, line);
}

void gc_on_fill(void *to, int byte, unsigned long bytes, int line) {
    if (!bytes)
        return;
    gc_region *region = check_range(to, bytes, line);
    if (!region)
        gc_stop(NULL, line, "", "sets memory that belongs to no buffer.");
    gc_stop_write_to_input(region, NULL, line);
    memset(to, byte, bytes);
    note_set(region, to, bytes, line);
}
