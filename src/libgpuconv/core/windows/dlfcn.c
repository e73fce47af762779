/* The functions of dlfcn.h, by means of Windows. */
#include "dlfcn.h"

#include "paths.h"
#include "posix.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void *gc_windows_dlopen(const char *path) {
    wchar_t wide[GC_WINDOWS_PATH];
    return gc_windows_path(path, wide) ? (void *)LoadLibraryW(wide) : NULL;
}

void *gc_windows_dlsym(void *library, const char *name) {
    const FARPROC function = GetProcAddress(library, name);
    void *symbol;
    memcpy(&symbol, &function, sizeof symbol);
    return symbol;
}

int gc_windows_dlclose(void *library) {
    return FreeLibrary(library) ? 0 : -1;
}

const char *gc_windows_dlerror(void) {
    static _Thread_local char text[64];
    (void)snprintf(text, sizeof text, "cannot be loaded: error %lu of the system", GetLastError());
    return text;
}
