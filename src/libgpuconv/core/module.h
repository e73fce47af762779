/* Loading modules at run time: shared objects that hold the parts of the program with additional library dependencies
 * (such as MPI), so that the program starts without these libraries. */
#ifndef GC_CORE_MODULE_H
#define GC_CORE_MODULE_H

#include <stddef.h>

/* Loads the module NAME.so from the program's folder or from ../lib/gpuconv relative to it, and returns the address of
 * its function `symbol`. The module stays loaded. @return NULL on failure; `why` (`room` bytes) gets the reason */
void *gc_module_load(const char *name, const char *symbol, char *why, size_t room);

#endif
