/* The variables of a compiled kernel, from its symbol table, and the lines of its source, from addr2line. */
#ifndef GPULAB_EMULATOR_SYMBOLS_H
#define GPULAB_EMULATOR_SYMBOLS_H

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

/* Finds the lines of student.cu for addresses in the library that is loaded from `library`; 0: none. Writes a file
 * beside it. */
void gc_symbols_lines(const char *library, const void *const *place, int *line, int count);

#endif
