/* The registry of backends. */
#include "backend.h"
#include "libgpuconv/core/error.h"

const gc_backend *gc_backend_find(gpuconv_backend id) {
    const char *why;
    if (id == GPUCONV_BACKEND_CPU)
        return &gc_backend_cpu;
    const gc_cuda_module *module = id == GPUCONV_BACKEND_CUDA ? gc_cuda_module_find(&why) : NULL;
    return module ? module->backend : NULL;
}

const char *gc_algorithm_name(gpuconv_algorithm id) {
    const gc_algorithm *const *row = gc_backend_cpu.algorithms;
    while (*row && (*row)->id != id)
        row++;
    return *row ? (*row)->name : NULL;
}

gpuconv_status gc_backend_fail_missing(gpuconv_status status, gpuconv_error *error) {
    const char *why = "";
    (void)gc_cuda_module_find(&why);
    return gc_fail(error, status, "no CUDA backend (docs/install.md): %s", why);
}
