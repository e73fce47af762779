/* The registry of backends: the one place that knows which ones are built. */
#include "backend.h"
#include "libgpuconv/core/error.h"

static const gc_backend *const backends[] = {&gc_backend_cpu,
#ifdef GPUCONV_WITH_CUDA
                                             &gc_backend_cuda,
#endif
                                             NULL};

const gc_backend *gc_backend_find(gpuconv_backend id) {
    const gc_backend *const *b = backends;
    while (*b && (*b)->id != id)
        b++;
    return *b;
}

const char *gc_algorithm_name(gpuconv_algorithm id) {
    for (const gc_backend *const *b = backends; *b; b++)
        for (const gc_algorithm *const *row = (*b)->algorithms; *row; row++)
            if ((*row)->id == id)
                return (*row)->name;
    return NULL;
}

gpuconv_status gc_backend_fail_missing(gpuconv_status status, gpuconv_error *error) {
    return gc_fail(error, status,
                   "this build has no CUDA backend; build with NVIDIA's toolkit (docs/install.md), or use the CPU");
}
