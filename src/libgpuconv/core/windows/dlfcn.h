/* Shared objects that are loaded at run time. */
#ifndef GC_CORE_WINDOWS_DLFCN_H
#define GC_CORE_WINDOWS_DLFCN_H

enum { RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_GLOBAL = 0 };

#define dlopen(path, flags) ((void)(flags), gc_windows_dlopen(path))
#define dlsym gc_windows_dlsym
#define dlclose gc_windows_dlclose
#define dlerror gc_windows_dlerror
void *gc_windows_dlopen(const char *path);
void *gc_windows_dlsym(void *library, const char *name);
int gc_windows_dlclose(void *library);
const char *gc_windows_dlerror(void); /* of the calling thread's last call */

#endif
