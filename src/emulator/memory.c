/* Keeps the regions in an array, and a shadow cell for each word. */
#include "memory.h"

#include "interface.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_REGIONS = 512, NO_THREAD = 0xffff };

static const uint64_t gap = 64 << 20;

/* An access. */
typedef struct note {
    uint32_t moment, site; /* moment 0: none */
    uint16_t thread;
    uint8_t epoch;
} note;

struct gc_cell {
    note write, atomic, read; /* the last ones; the first without atomic writes */
    uint16_t other_reader;    /* of the moment of the last read, or NO_THREAD */
    bool set;
};

static gc_region regions[MAX_REGIONS];
static int region_count;
static gc_region *last_found;

gc_region *gc_memory_add(const gc_region *region) {
    if (region_count == MAX_REGIONS)
        return NULL;
    regions[region_count] = *region;
    return &regions[region_count++];
}

static uint64_t round_up(uint64_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

gc_region *gc_memory_allocate(const char *name, uint64_t bytes) {
    if (bytes > UINT64_C(1) << 40)
        return NULL;
    char *all = mmap(NULL, round_up(bytes) + 2 * gap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    gc_region region = {.begin = (uintptr_t)(all + gap), .bytes = bytes, .owned = true};
    strncpy(region.name, name, sizeof region.name - 1);
    gc_region *added = NULL;
    if (bytes == 0 || mprotect(all + gap, round_up(bytes), PROT_READ | PROT_WRITE) == 0)
        added = gc_memory_add(&region);
    if (!added)
        (void)munmap(all, round_up(bytes) + 2 * gap);
    return added;
}

void gc_memory_clear(void) {
    for (int i = 0; i < region_count; i++) {
        free(regions[i].cells);
        if (regions[i].owned)
            (void)munmap((void *)(uintptr_t)(regions[i].begin - gap), round_up(regions[i].bytes) + 2 * gap);
    }
    region_count = 0;
    last_found = NULL;
}

static bool contains(const gc_region *r, uintptr_t address) {
    return address - r->begin < r->bytes && !r->freed;
}

gc_region *gc_memory_find(uintptr_t address) {
    if (last_found && contains(last_found, address))
        return last_found;
    for (int i = 0; i < region_count; i++)
        if (contains(&regions[i], address))
            return last_found = &regions[i];
    return NULL;
}

gc_region *gc_memory_nearest(uintptr_t address) {
    gc_region *best = NULL;
    uint64_t best_distance = gap;
    for (int i = 0; i < region_count; i++) {
        const gc_region *r = &regions[i];
        uint64_t distance = address < r->begin              ? r->begin - address
                            : address - r->begin < r->bytes ? 0 /* freed */
                                                            : address - (r->begin + r->bytes);
        /* Shared arrays lie side by side; an address beyond all of them belongs to the nearest one. */
        if (distance < best_distance && (r->owned || distance < 4096)) {
            best = &regions[i];
            best_distance = distance;
        }
    }
    return best;
}

void gc_memory_each_shared(void (*call)(gc_region *region)) {
    for (int i = 0; i < region_count; i++)
        if (regions[i].space == GC_SPACE_SHARED)
            call(&regions[i]);
}

static uint64_t cell_count(const gc_region *r) {
    return r->is_narrow ? r->bytes : (r->bytes + 3) / 4;
}

void gc_memory_forget(gc_region *region) {
    if (region->cells)
        memset(region->cells, 0, cell_count(region) * sizeof *region->cells);
}

/* Makes cells that are fine enough for an access. Returns false without memory. */
static bool prepare_cells(gc_region *r, uint64_t offset, uint64_t bytes) {
    bool narrow = r->is_narrow || (offset | bytes) % 4 != 0;
    if (r->cells && narrow == r->is_narrow)
        return true;
    gc_cell *cells = gc_calloc((int64_t)((narrow ? r->bytes : (r->bytes + 3) / 4) + 1), sizeof *cells);
    if (!cells)
        return false;
    for (uint64_t i = 0; r->cells && i < r->bytes; i++)
        cells[i] = r->cells[i / 4];
    free(r->cells);
    r->cells = cells;
    r->is_narrow = narrow;
    return true;
}

gc_fault gc_memory_set(gc_region *region, uint64_t offset, uint64_t bytes) {
    if (region->is_set)
        return GC_FAULT_NONE;
    if (!prepare_cells(region, offset, bytes))
        return GC_FAULT_MEMORY;
    int shift = region->is_narrow ? 0 : 2;
    for (uint64_t i = offset >> shift; i < (offset + bytes) >> shift; i++)
        region->cells[i] = (gc_cell){.set = true};
    return GC_FAULT_NONE;
}

bool gc_memory_is_set(const gc_region *region, uint64_t offset) {
    return region->is_set || (region->cells && region->cells[region->is_narrow ? offset : offset / 4].set);
}

/* Returns whether an earlier access has no order with this one, and fills `other` with it. */
static bool is_concurrent(const gc_accessor *a, const note *earlier, gc_other *other) {
    if (earlier->moment < a->launch_began)
        return false;
    bool other_block = earlier->moment < a->block_began;
    if (!other_block && (earlier->moment != a->now || earlier->thread == a->thread ||
                         (earlier->thread / 32 == a->thread / 32 && earlier->epoch != a->epoch)))
        return false;
    *other = (gc_other){earlier->thread, true, other_block, earlier->site};
    return true;
}

static gc_fault check_read(const gc_cell *cell, const gc_accessor *a, gc_other *other) {
    bool ordered = a->fenced; /* __threadfence() orders what a block reads after what other blocks wrote */
    if (is_concurrent(a, &cell->write, other) && !(ordered && other->other_block))
        return GC_FAULT_RACE;
    if (is_concurrent(a, &cell->atomic, other) && !(ordered && other->other_block))
        return GC_FAULT_READ_OF_ATOMIC;
    return GC_FAULT_NONE;
}

static gc_fault check_write(const gc_cell *cell, const gc_accessor *a, bool atomic, gc_other *other) {
    if (is_concurrent(a, &cell->write, other) || (!atomic && is_concurrent(a, &cell->atomic, other)))
        return GC_FAULT_RACE;
    note reader = cell->read;
    if (reader.thread == a->thread && cell->other_reader != NO_THREAD)
        reader.thread = cell->other_reader;
    if (!is_concurrent(a, &reader, other) || (a->fenced && other->other_block))
        return GC_FAULT_NONE;
    other->wrote = false;
    return GC_FAULT_RACE;
}

static gc_fault check_cell(gc_cell *cell, bool region_is_set, const gc_access *access, gc_other *other) {
    const gc_accessor *a = access->by;
    const note now = {a->now, access->site, a->thread, a->epoch};
    bool writes = access->kind & GC_EMULATOR_WRITE, atomic = access->kind & GC_EMULATOR_ATOMIC;
    bool unset = (!writes || atomic) && !cell->set && !region_is_set;
    gc_fault fault = unset ? GC_FAULT_UNSET : writes ? check_write(cell, a, atomic, other) : check_read(cell, a, other);
    if (!writes || unset) {
        cell->other_reader = cell->read.moment != a->now      ? NO_THREAD
                             : cell->read.thread != a->thread ? cell->read.thread
                                                              : cell->other_reader;
        cell->read = now;
    }
    if (fault || !writes)
        return fault;
    if (atomic && cell->read.thread == a->thread && cell->other_reader == NO_THREAD)
        cell->read.moment = 0; /* its own read was the beginning of a loop with atomicCAS */
    *(atomic ? &cell->atomic : &cell->write) = now;
    cell->set = true;
    return GC_FAULT_NONE;
}

gc_fault gc_memory_access(gc_region *region, const gc_access *access, gc_other *other) {
    if (!prepare_cells(region, access->offset, access->bytes))
        return GC_FAULT_MEMORY;
    int shift = region->is_narrow ? 0 : 2;
    uint64_t end = (access->offset + access->bytes) >> shift;
    for (uint64_t i = access->offset >> shift; i < end; i++) {
        gc_fault fault = check_cell(&region->cells[i], region->is_set, access, other);
        if (fault)
            return fault;
    }
    return GC_FAULT_NONE;
}
