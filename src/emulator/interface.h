/*
 * The calls from a kernel that was compiled for the CPU into the emulator.
 *
 * This header is compiled twice: into gpulab as C11, and into the student's library as C++, where hooks.cpp turns the
 * calls of the compiler's instrumentation into calls of this table. The kernel's library has no other symbol of
 * gpulab.
 */
#ifndef GPULAB_EMULATOR_INTERFACE_H
#define GPULAB_EMULATOR_INTERFACE_H

typedef struct gc_emulator_index {
    unsigned x, y, z;
} gc_emulator_index;

typedef struct gc_emulator_launch {
    gc_emulator_index grid, block;
    unsigned long shared_bytes;         /* dynamic shared memory */
    void (*body)(const void *argument); /* the code of a thread */
    const void *argument;
    unsigned long argument_bytes;
    const void *function; /* of the host, which calls the kernel */
    int line;             /* of the source */
} gc_emulator_launch;

enum { GC_EMULATOR_READ = 0, GC_EMULATOR_WRITE = 1, GC_EMULATOR_ATOMIC = 2, GC_EMULATOR_UNALIGNED = 4 };

enum { GC_EMULATOR_THREAD, GC_EMULATOR_BLOCK, GC_EMULATOR_BLOCK_SIZE, GC_EMULATOR_GRID_SIZE };

enum { GC_EMULATOR_DYNAMIC_BYTES = 227 << 10, GC_EMULATOR_MULTIPROCESSORS = 4 };

typedef struct gc_emulator_table {
    /* A thread, or the host, is about to access memory. `kind` is a sum of the values above. */
    void (*access)(const void *address, unsigned long bytes, int kind, const void *place);
    void (*step)(const void *place);                             /* a thread enters a basic block */
    void (*enter_host)(const void *function, const void *place); /* a function without __device__ begins */
    void (*outside_array)(int line, long long index);
    void (*divide_by_zero)(int line);
    gc_emulator_index (*index)(int which, const void *place);
    void (*launch)(const gc_emulator_launch *launch);
    int (*barrier)(int line, int predicate, int *threads); /* returns for how many threads the predicate was true */
    /* Exchanges a value with the lanes of `mask`; returns the 32 values. */
    const unsigned long long *(*exchange)(int line, unsigned mask, unsigned long long value);
    unsigned (*active)(void);
    void (*fence)(void);
    unsigned long long (*clock)(void);
    /* The host's functions. */
    void *(*allocate)(unsigned long bytes);
    int (*release)(void *memory);
    int (*set_error)(int code);   /* sets the last error; returns it */
    int (*last_error)(int clear); /* returns it */
    /* Copies also within the host's memory. `kind` is a cudaMemcpyKind. */
    void (*copy)(void *to, const void *from, unsigned long bytes, int kind, int line);
    void (*fill)(void *to, int byte, unsigned long bytes, int line);
} gc_emulator_table;

#endif
