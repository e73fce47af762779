/* Loads the CUDA backend from its module, so that the same programs run with and without it. */
#include "backend.h"
#include "libgpuconv/core/module.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const gc_cuda_module *found;
static char reason[500];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_once(void) {
    const gc_cuda_module *module = gc_module_load("libgpuconv-cuda", GC_CUDA_MODULE, reason, sizeof reason);
    if (module && strcmp(module->version, GPUCONV_VERSION) == 0)
        found = module;
    else if (module)
        (void)snprintf(reason, sizeof reason, "libgpuconv-cuda has version %.40s, and the library %s; install the same",
                       module->version, GPUCONV_VERSION);
}

const gc_cuda_module *gc_cuda_module_find(const char **why) {
    pthread_once(&once, load_once);
    *why = reason;
    return found;
}
