/* The name of this machine's processor. */
#ifndef GC_CORE_PROCESSOR_H
#define GC_CORE_PROCESSOR_H

#include <stddef.h>

/* Writes the model name of /proc/cpuinfo, or "CPU" if it is not known. At most `size` bytes. */
void gc_processor_name(char *name, size_t size);

#endif
