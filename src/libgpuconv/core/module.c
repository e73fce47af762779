/* Loading shared objects with dlopen. */
#include "module.h"

#include "os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *gc_module_load(const char *name, const char *symbol, char *why, size_t room) {
    static const char *const folders[] = {"", "../lib/gpuconv/", "../../", "../../gpuconv/"};
    char own[4096], path[4400];
    (void)snprintf(why, room, "%s%s is not beside the program", name, gc_os_module_suffix);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!(i < 2 ? gc_os_program_path(own, sizeof own) : gc_os_code_path(own, sizeof own)))
            continue;
        size_t length = strlen(own);
        while (length > 0 && own[length - 1] != '/')
            length--;
        (void)snprintf(path, sizeof path, "%.*s%s%.100s%s", (int)length, own, folders[i], name, gc_os_module_suffix);
        if (length == 0 || access(path, R_OK) != 0)
            continue;
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found = module ? dlsym(module, symbol) : NULL;
        if (found)
            return found;
        const char *reason = dlerror();
        (void)snprintf(why, room, "%.300s", reason ? reason : path);
    }
    return NULL;
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
