/* What this machine's processor is called. */
#ifndef GC_CORE_PROCESSOR_H
#define GC_CORE_PROCESSOR_H

#include <stddef.h>

/* As the system gives it, or "CPU". */
void gc_processor_name(char *name, size_t size);

#endif
