/*
 * The memory that a kernel may access: buffers, shared arrays, variables.
 *
 * Each region has shadow cells, one for four bytes or, after a narrower access, one for each byte. A cell knows whether
 * the memory was set, and who last wrote and read it. The time is counted in moments: a moment begins at every launch,
 * block and barrier. Two accesses of different threads in one moment have no order, so that they are a race if one
 * writes and not both are atomic. Blocks of one launch have no order either.
 */
#ifndef GPULAB_EMULATOR_MEMORY_H
#define GPULAB_EMULATOR_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gc_space { GC_SPACE_GLOBAL, GC_SPACE_SHARED, GC_SPACE_CONSTANT } gc_space;

typedef struct gc_cell gc_cell;

typedef struct gc_region {
    char name[64];
    gc_space space;
    uintptr_t begin;
    uint64_t bytes;
    unsigned element;  /* bytes; 0: not known */
    bool is_set;       /* all of it, from the beginning */
    bool is_const;     /* an input of the kernel */
    bool is_narrow;    /* a cell for each byte */
    bool owned, freed; /* allocated by gc_memory_allocate; released by the student */
    gc_cell *cells;    /* NULL: made at the first access */
} gc_region;

/* The thread that accesses, and the moment. */
typedef struct gc_accessor {
    uint32_t now, block_began, launch_began; /* moments */
    uint16_t thread;                         /* within the block */
    uint8_t epoch;                           /* its synchronisations with its warp */
    bool fenced;                             /* a thread of the launch has called __threadfence() */
} gc_accessor;

typedef enum gc_fault {
    GC_FAULT_NONE,
    GC_FAULT_UNSET,
    GC_FAULT_RACE,
    GC_FAULT_READ_OF_ATOMIC, /* a race, unless the thread goes on with an atomic operation: a loop with atomicCAS */
    GC_FAULT_MEMORY
} gc_fault;

/* The other access of a race. */
typedef struct gc_other {
    uint16_t thread;
    bool wrote, other_block;
    uint32_t site;
} gc_other;

typedef struct gc_access {
    const gc_accessor *by;
    uint64_t offset, bytes; /* in the region */
    int kind;               /* of interface.h */
    uint32_t site;
} gc_access;

/* Adds a region of existing memory. NULL without memory. */
gc_region *gc_memory_add(const gc_region *region);

/* Adds a region of new memory, with a wide gap on both sides. NULL without memory. */
gc_region *gc_memory_allocate(const char *name, uint64_t bytes);

/* Removes all regions. */
void gc_memory_clear(void);

/* Returns the region that contains an address, or NULL. */
gc_region *gc_memory_find(uintptr_t address);

/* Returns the region whose gap contains an address, or NULL. */
gc_region *gc_memory_nearest(uintptr_t address);

/* Calls a function with each region of shared memory. */
void gc_memory_each_shared(void (*call)(gc_region *region));

/* Checks an access of a thread and notes it. */
gc_fault gc_memory_access(gc_region *region, const gc_access *access, gc_other *other);

/* Notes that the host has set memory. @return MEMORY */
gc_fault gc_memory_set(gc_region *region, uint64_t offset, uint64_t bytes);

/* Returns whether the memory at an offset was set. */
bool gc_memory_is_set(const gc_region *region, uint64_t offset);

/* Forgets all that the cells know: a block begins. */
void gc_memory_forget(gc_region *region);

#endif
