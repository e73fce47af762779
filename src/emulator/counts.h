/*
 * Counts the causes of a GPU's time: memory sectors, bank conflicts, lanes that wait for others.
 *
 * The lanes of a warp run one after the other. The k-th execution of a place in the program by one lane belongs to the
 * same instruction of the warp as the k-th execution by another one, between two barriers.
 */
#ifndef GPULAB_EMULATOR_COUNTS_H
#define GPULAB_EMULATOR_COUNTS_H

#include "memory.h"

typedef enum gc_site_kind { GC_SITE_BLOCK, GC_SITE_GLOBAL, GC_SITE_SHARED, GC_SITE_OTHER } gc_site_kind;

/* The number of a place in the program. Its kind is that of the first call. */
uint32_t gc_counts_site(const void *place, gc_site_kind kind);

/* The place of a number. */
const void *gc_counts_place(uint32_t site);

/* Notes that a lane of the present warp executes a place. `address` and `bytes` are those of a memory access. */
void gc_counts_note(uint32_t site, int lane, uintptr_t address, unsigned bytes);

/* Ends the warp's interval: adds what was noted. Another warp, or the same one after a barrier, follows. */
void gc_counts_flush(void);

/* Forgets all counts. */
void gc_counts_clear(void);

/* Sums over the accesses of a kind. */
typedef struct gc_sum {
    int64_t requests;    /* executions by a warp */
    int64_t lanes;       /* executions by a lane */
    int64_t spent, best; /* sectors or cycles, and the smallest possible number; for blocks: lanes that ran or waited,
                            and those that ran */
    const void *worst;   /* the place that loses most; NULL: none loses */
    double worst_ratio;  /* spent / requests there */
} gc_sum;

gc_sum gc_counts_sum(gc_site_kind kind);

#endif
