/* The variables of a compiled kernel, and an error and the counts of a run as text with lines of the source. */
#ifndef GPULAB_EMULATOR_REPORT_H
#define GPULAB_EMULATOR_REPORT_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gc_symbol {
    char name[64];
    uint64_t value, bytes; /* the value is an offset in the library, or in its thread-local segment */
    bool is_thread_local;  /* __shared__ */
} gc_symbol;

/* Reads the variables of a library. Releases with free. @return FILE, MEMORY */
gpuconv_status gc_symbols_read(const char *library, gc_symbol **symbols, int *count, gpuconv_error *error);

/* An error of a run. */
typedef struct gc_failure {
    bool is_set;
    char thread[100];        /* its name, with the block; empty: the host */
    const void *place;       /* address in the program; NULL: the line is known */
    int line;                /* 0: none */
    const void *other_place; /* of the other access of a race; %LINE% in the text is its line */
    bool is_shared_race;     /* the hint is where the barrier is missing */
    int barrier;             /* the last one that both threads passed, if it stands in a loop; 0: none */
    char text[600], hint[300];
} gc_failure;

/* Writes "Line 9: thread 3 of block 1 reads ...", the line, and what to do. */
void gc_report_failure(const gc_failure *failure, const char *library, char *text, size_t room);

/* Writes a line each for global memory, shared memory and divergence. */
void gc_report_counts(const char *library, char *text, size_t room);

#endif
