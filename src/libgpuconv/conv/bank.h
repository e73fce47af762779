/*
 * The backend interface of banks: convolution in real time on a GPU, one block of every channel in each period. Every
 * output is the sum of inputs through a response each. A filter bank, whose channels have a response each, is a
 * diagonal list of routes. The functions allocate and block: call them from a worker thread, never from an audio
 * callback.
 */
#ifndef GC_CONV_BANK_H
#define GC_CONV_BANK_H

#include "algorithm.h"

typedef struct gc_bank gc_bank;

typedef struct gc_bank_options {
    int inputs, outputs; /* 1..4096; of a diagonal list 1..1048576 */
    int routes;          /* 1..16777216 */
    /* Sorted by output, one response each; `plane` is not used. `open` copies what it needs. */
    const gc_route *route;
    int block;    /* frames per period, a power of two, 32..1024 */
    int64_t taps; /* of each response */
    int device;   /* -1: the device with the most multiprocessors */
    /* Writes the response of a route; called once per route, in order. */
    void (*response)(void *context, int route, float *taps);
    void *context;
} gc_bank_options;

typedef struct gc_bank_backend {
    /* Creates a bank, transforms its responses and runs one period, so that later periods allocate nothing. Fails with
     * ARGUMENT, DEVICE or MEMORY. */
    gpuconv_status (*open)(const gc_bank_options *options, gc_bank **bank, gpuconv_error *error);

    /* Processes one period of inputs x block frames, planar, without added latency, to outputs x block frames. `in` is
     * memory from `alloc_pinned`, or any memory. *out is owned by the bank and valid until the next call. Fails with
     * DEVICE. */
    gpuconv_status (*process)(gc_bank *bank, const float *in, const float **out, gpuconv_error *error);

    /* Allocates pinned host memory for inputs, to be freed before the bank. Returns NULL if there is too little. */
    float *(*alloc_pinned)(gc_bank *bank, int64_t floats);
    void (*free_pinned)(gc_bank *bank, float *pinned);

    /* Returns one sentence: the partitions of the responses and the memory that they use. */
    const char *(*plan)(const gc_bank *bank);
    void (*free)(gc_bank *bank);
} gc_bank_backend;

extern const gc_bank_backend gc_bank_cuda;

/* ---- Plan (bank_plan.c) ------------------------------------------------------------------------------------------ */

/* The cuts of a response into levels that a search compares. */
typedef struct gc_level_search {
    const gc_problem *problem;
    const gc_costs *costs;

    /* Returns the seconds of a level per frame; HUGE_VAL: the level cannot be computed in time. number: 0 is the first.
     */
    double (*seconds)(const gc_problem *problem, const gc_costs *costs, gc_level *level, int number);

    int64_t taps;
    int64_t shortest, longest; /* hops of the levels behind the first one */
    int earliest, latest;      /* first taps of these levels, in hops */
    int most;                  /* levels */
} gc_level_search;

/* Fills cost and levels of a choice: the cut with the lowest cost. first_hop: of the first level. */
void gc_levels_search(const gc_level_search *search, int64_t first_hop, gc_choice *choice);

/* Returns whether route c leads from input c to output c, and there are no others. */
bool gc_bank_is_diagonal(const gc_bank_options *options);

/* The algorithm of banks on a GPU: fills choice->levels. */
extern const gc_algorithm gc_bank_levels;

#endif
