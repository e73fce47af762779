/* Parts of the program that want libraries of their own, loaded only by those who use them. */
#ifndef GC_CORE_MODULE_H
#define GC_CORE_MODULE_H

#include <stddef.h>

/* The function `symbol` of the module NAME.so, which lies beside the program or in ../lib/gpuconv from there. NULL,
 * with a reason. A module stays loaded. */
void *gc_module_find(const char *name, const char *symbol, char *why, size_t room);

#endif
