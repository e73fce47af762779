/* The registry of backends: the one place that knows which ones are built. */
#include "backend.h"
#include "libgpuconv/core/error.h"

#ifdef GPUCONV_WITH_CUDA
static const gc_backend *const cuda = &gc_backend_cuda;
#else
static const gc_backend *const cuda = NULL;
#endif

const gc_backend *gc_backend_find(gpuconv_backend id) {
    return id == GPUCONV_BACKEND_CPU ? &gc_backend_cpu : id == GPUCONV_BACKEND_CUDA ? cuda : NULL;
}

gpuconv_status gc_backend_fail_missing(gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "this build has no CUDA backend");
}
