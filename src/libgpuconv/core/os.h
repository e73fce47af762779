/* What differs between operating systems; no other file asks for which one it is compiled. */
#ifndef GC_CORE_OS_H
#define GC_CORE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Allocates `bytes` bytes at a multiple of `alignment`, a power of two, which free() frees. `huge`: asks for huge
 * pages.
 * @return NULL without memory */
void *gc_os_allocate(int64_t alignment, int64_t bytes, bool huge);

/* Keeps freed memory in the process, for blocks of up to 32 MiB: memory that goes back to the system is mapped and
 * cleared again for the next use. */
void gc_os_keep_freed_memory(void);

/* Writes the model of this machine's processor, or "CPU" if it is not known. At most `size` bytes. */
void gc_os_processor_name(char *name, size_t size);

/* Starts a program with three descriptors as its standard streams, default signals and no other descriptor.
 * @return 0 or an errno value */
int gc_os_start(const char *program, char *const argv[], char *const environment[], const int stream[3], pid_t *child);

#endif
