/*
 * Emulator of a GPU: runs a student's kernel on the CPU and looks for its errors.
 *
 * emulator/compile.h compiles the kernel with the host's C++ compiler, whose instrumentation calls the emulator before
 * every access to memory. The threads of a block are fibers; a warp is 32 of them. The first error ends the run:
 *
 *   an access outside every buffer or array, misaligned, or to memory of the host
 *   a read of memory that was never set
 *   a race: two threads access one element, one of them writes, and no barrier or atomic operation lies between
 *   a barrier or a shuffle that some threads do not reach
 *   a thread that does not end, a function without __device__, a launch that a GPU refuses
 *
 * There is one emulator in a process, and it is used by one thread.
 */
#ifndef GPULAB_EMULATOR_H
#define GPULAB_EMULATOR_H

#include "gpuconv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer of the kernel, on the host. */
typedef struct gc_emulator_buffer {
    const char *name;
    void *data;
    int64_t bytes;
    unsigned element; /* bytes */
    bool is_float;
    bool is_set;   /* before the kernel runs */
    bool is_const; /* neither solve nor a kernel may write it */
} gc_emulator_buffer;

/* Totals of the last run. */
typedef struct gc_emulator_totals {
    int64_t threads;               /* of all launches */
    int64_t global_accesses;       /* by threads */
    int64_t sectors, best_sectors; /* of global memory */
    int64_t shared_requests;       /* by warps */
    int64_t shared_cycles, best_shared_cycles;
} gc_emulator_totals;

/* Function of the library, as in gpulab/student.h. */
typedef int (*gc_emulator_solve)(void *const *buffer, const int64_t *size, void *stream);

/* Connects the emulator with a library that dlopen has loaded from `path`. Does nothing if the library was compiled for
 * a GPU. @return FILE, MEMORY */
gpuconv_status gc_emulator_open(void *library, const char *path, gpuconv_error *error);

/* Returns whether a library is connected. */
bool gc_emulator_is_open(void);

/* Runs `solve` on copies of the buffers, and copies them back. A NaN whose bits are all set, with which the caller
 * marks what was not written, becomes another NaN if it was written. @return false if it found an error */
bool gc_emulator_run(gc_emulator_solve solve, const gc_emulator_buffer *buffer, int count, const int64_t *size);

/* Writes the error, with its line and thread, as lines of text. */
void gc_emulator_error(char *text, size_t room);

gc_emulator_totals gc_emulator_get_totals(void);

/* Writes the counts of the last run, as lines of text. */
void gc_emulator_counts(char *text, size_t room);

#endif
