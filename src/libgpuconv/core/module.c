/* Loading shared objects with dlopen. */
#include "module.h"

#include "os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Loads a module and returns the address of its symbol, or NULL with the reason in `why`. */
static void *load(const char *path, const char *symbol, char *why, size_t room) {
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found = module ? dlsym(module, symbol) : NULL;
    const char *reason = found ? NULL : dlerror();
    if (!found)
        (void)snprintf(why, room, "%.300s", reason ? reason : path);
    return found;
}

void *gc_module_load(const char *name, const char *symbol, char *why, size_t room) {
    enum { FOLDERS = 5 };
    static const char *const folders[FOLDERS] = {"", "gpuconv/", GC_MODULES_FROM_PROGRAM, "../../", "../../gpuconv/"};
    char beside[2][4096], path[4400], resolved[4400], culprit[4400];
    const bool known[2] = {gc_os_library_path(beside[0], sizeof *beside),
                           gc_os_program_path(beside[1], sizeof *beside)};
    void *found = NULL;
    bool tried = false;
    for (size_t i = 0; i < 2 * FOLDERS && !found; i++) {
        const char *end = known[i / FOLDERS] ? strrchr(beside[i / FOLDERS], '/') : NULL;
        if (!end)
            continue;
        (void)snprintf(path, sizeof path, "%.*s/%s%.100s%s", (int)(end - beside[i / FOLDERS]), beside[i / FOLDERS],
                       folders[i % FOLDERS], name, gc_os_module_suffix);
        if (access(path, R_OK) != 0)
            continue;
        tried = true;
        if (gc_os_is_trusted(path, beside[i / FOLDERS], resolved, sizeof resolved, culprit))
            found = load(resolved, symbol, why, room);
        else
            (void)snprintf(why, room, "%.200s is not loaded, because other users can replace %.200s", path, culprit);
    }
    (void)snprintf(path, sizeof path, "%.100s%s", name, gc_os_module_suffix);
    return found || tried ? found : load(path, symbol, why, room);
}

void *gc_library_open(const char *const *names, bool global) {
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    return library;
}

bool gc_library_find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}
