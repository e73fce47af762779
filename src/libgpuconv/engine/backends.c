/* The registry of backends: the one place that knows which ones are built. */
#include "backends.h"

#include "libgpuconv/core/error.h"

static const gc_backend_tables cpu = {
    .convolver = &gc_backend_cpu, .measure = &gc_measure_backend_cpu, .batch = &gc_batch_cpu};

#ifdef GPUCONV_WITH_CUDA
static const gc_backend_tables cuda = {
    .convolver = &gc_backend_cuda, .measure = &gc_measure_backend_cuda, .batch = &gc_batch_cuda, .bank = &gc_bank_cuda};
static const gc_backend_tables *const cuda_tables = &cuda;
#else
static const gc_backend_tables *const cuda_tables = NULL;
#endif

const gc_backend_tables *gc_backend_find(gpuconv_backend backend) {
    return backend == GPUCONV_BACKEND_CPU ? &cpu : backend == GPUCONV_BACKEND_CUDA ? cuda_tables : NULL;
}

gpuconv_status gc_backend_fail_missing(gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "this build has no CUDA backend");
}
