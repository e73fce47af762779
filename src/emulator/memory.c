/* Keeps the regions in an array, and a shadow cell for each word. */
#include "memory.h"

#include "interface.h"
#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_REGIONS = 512, NO_THREAD = 0xffff };

static const uint64_t gap = 64 << 20;

struct gc_cell {
    uint32_t write_moment, read_moment, write_site, read_site;
    uint16_t write_thread, read_thread, other_reader;
    uint8_t write_epoch, read_epoch;
    bool set, was_atomic;
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
            (void)munmap((void *)(regions[i].begin - gap), round_up(regions[i].bytes) + 2 * gap);
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
        uint64_t distance = address < r->begin ? r->begin - address : address - (r->begin + r->bytes);
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

/* Returns whether an earlier access has no order with one of `a`. */
static bool is_concurrent(const gc_accessor *a, uint32_t moment, uint16_t thread, uint8_t epoch) {
    if (moment < a->launch_began)
        return false;
    if (moment < a->block_began)
        return true; /* another block */
    return moment == a->now && thread != a->thread && (thread / 32 != a->thread / 32 || epoch == a->epoch);
}

/* Fills `other` with an earlier write. Returns RACE if it has no order with this access. */
static gc_fault check_write(const gc_cell *cell, const gc_access *access, gc_other *other) {
    const gc_accessor *a = access->by;
    if (!is_concurrent(a, cell->write_moment, cell->write_thread, cell->write_epoch) ||
        (cell->was_atomic && access->kind & GC_EMULATOR_ATOMIC))
        return GC_FAULT_NONE;
    *other = (gc_other){cell->write_thread, true, cell->write_moment < a->block_began, cell->write_site};
    return a->fenced && other->other_block && !(access->kind & GC_EMULATOR_WRITE) ? GC_FAULT_NONE : GC_FAULT_RACE;
}

/* Fills `other` with an earlier read. Returns RACE if it has no order with this write. */
static gc_fault check_read(const gc_cell *cell, const gc_access *access, gc_other *other) {
    const gc_accessor *a = access->by;
    uint16_t reader = cell->read_thread == a->thread && cell->read_moment == a->now && cell->other_reader != NO_THREAD
                          ? cell->other_reader
                          : cell->read_thread;
    if (!is_concurrent(a, cell->read_moment, reader, cell->read_epoch))
        return GC_FAULT_NONE;
    *other = (gc_other){reader, false, cell->read_moment < a->block_began, cell->read_site};
    return a->fenced && other->other_block ? GC_FAULT_NONE : GC_FAULT_RACE;
}

static void note_read(gc_cell *cell, const gc_access *access) {
    const gc_accessor *a = access->by;
    if (cell->read_moment != a->now)
        cell->other_reader = NO_THREAD;
    else if (cell->read_thread != a->thread)
        cell->other_reader = cell->read_thread;
    cell->read_moment = a->now;
    cell->read_thread = a->thread;
    cell->read_epoch = a->epoch;
    cell->read_site = access->site;
}

static gc_fault check_cell(gc_cell *cell, bool region_is_set, const gc_access *access, gc_other *other) {
    bool writes = access->kind & GC_EMULATOR_WRITE, atomic = access->kind & GC_EMULATOR_ATOMIC;
    if ((!writes || atomic) && !cell->set && !region_is_set) {
        note_read(cell, access);
        return GC_FAULT_UNSET;
    }
    gc_fault fault = check_write(cell, access, other);
    if (!fault && writes)
        fault = check_read(cell, access, other);
    if (fault)
        return fault;
    if (!writes) {
        note_read(cell, access);
        return GC_FAULT_NONE;
    }
    cell->write_moment = access->by->now;
    cell->write_thread = access->by->thread;
    cell->write_epoch = access->by->epoch;
    cell->write_site = access->site;
    cell->was_atomic = atomic;
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
