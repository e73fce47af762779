/* Loading shared objects at run time, so that the program starts without them: modules of the program, which hold its
 * parts with additional dependencies (such as MPI), and libraries that are used only if they are installed. */
#ifndef GC_CORE_MODULE_H
#define GC_CORE_MODULE_H

#include <stdbool.h>
#include <stddef.h>

/* Loads the module NAME.so and returns the address of its `symbol`. The module is looked for in the folder of this
 * library and in that of the program, in gpuconv, GC_MODULES_FROM_PROGRAM (CMake's library folder, ../lib/gpuconv) and,
 * for a plug-in, ../.. and ../../gpuconv relative to them, and where the system looks for libraries. A file that other
 * users can replace (gc_os_is_trusted) is not loaded. The module stays loaded. @return NULL on failure; `why` (`room`
 * bytes) gets the reason */
void *gc_module_load(const char *name, const char *symbol, char *why, size_t room);

/* Opens the first library of a NULL-terminated list that can be opened; to be closed with dlclose. `global`: later
 * libraries may use its symbols. @return NULL if none can be opened */
void *gc_library_open(const char *const *names, bool global);

/* Copies the address of a function of the library into the function pointer at `function`. C forbids the cast from
 * void * to a function pointer; POSIX guarantees the representation. @return false if the library has no such function
 */
bool gc_library_find(void *library, const char *name, void *function);

#endif
