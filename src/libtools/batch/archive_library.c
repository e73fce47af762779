/* Loads libarchive at run time. */
#include "archive_library.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

#include <pthread.h>

static gc_archive functions;
static bool is_loaded;

static void load(void) {
    static const char *const names[] = {"libarchive.so.13", "libarchive.so", NULL};
    void *library = gc_library_open(names, false); /* stays open */
    is_loaded = library != NULL;
#define FIND(name) is_loaded = is_loaded && gc_library_find(library, "archive_" #name, &functions.name);
    GC_ARCHIVE_FUNCTIONS(FIND)
#undef FIND
    is_loaded = is_loaded && gc_library_find(library, "archive_errno", &functions.error_number);
}

gpuconv_status gc_archive_load(const gc_archive **library, gpuconv_error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    *library = &functions;
    return is_loaded ? GPUCONV_OK
                     : gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                               "tar shards need libarchive, which is not installed (Debian: libarchive13)");
}
